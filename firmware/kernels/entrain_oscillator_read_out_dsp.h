/* Read-outs of two settled oscillators with SMLAD. */
#ifndef ENTRAIN_OSCILLATOR_READ_OUT_DSP_H
#define ENTRAIN_OSCILLATOR_READ_OUT_DSP_H

#include "entrain_oscillator_moments_dsp.h"

/* entrain_read_out with half a step and the zero point given, so that a register may hold them. */
ENTRAIN_INLINE int8_t entrain_read_out_above(struct entrain_oscillator oscillator,
                                             int32_t numerator, int32_t factor, int32_t offset) {
    const int32_t quotient = entrain_high_product_plus(numerator, factor, offset);
    const int32_t shift = oscillator.shift - 32;
    return (int8_t)(oscillator.result.is_unsigned ? entrain_shift_to_unsigned_byte(quotient, shift)
                                                  : entrain_shift_to_signed_byte(quotient, shift));
}

ENTRAIN_INLINE void entrain_oscillator_factorised(struct entrain_oscillator oscillator,
                                                  int32_t head, struct entrain_oscillator_plan plan,
                                                  int8_t *first, int8_t *second) {
    const entrain_halves_pair *sums =
        (const entrain_halves_pair *)(oscillator.anchor_sums +
                                      entrain_head_components(oscillator, head));
    const entrain_halves_pair *other = plan.states + plan.pairs;
    const uint32_t state0 = plan.states[0];
    const uint32_t state1 = other[0];
    int32_t weight0 = entrain_smlad(state0, sums[0], oscillator.token_weight);
    int32_t weight1 = entrain_smlad(state1, sums[0], oscillator.token_weight);
    for (int32_t p = 1; p < plan.pairs; p++) {
        weight0 = entrain_smlad(plan.states[p], sums[p], weight0);
        weight1 = entrain_smlad(other[p], sums[p], weight1);
    }
    const int32_t factor0 = entrain_read_out_factor(oscillator, weight0);
    const int32_t factor1 = entrain_read_out_factor(oscillator, weight1);
    int32_t offset = oscillator.result.zero_point * (1 << (oscillator.shift - 32)) +
                     (1 << (oscillator.shift - 33));
    __asm("" : "+r"(offset)); /* or each channel makes it anew */
    const entrain_halves_pair *row = plan.moments;
#pragma GCC unroll 4
    for (int32_t c = 0; c < oscillator.d_value; c++) {
        ENTRAIN_BARRIER(); /* of all channels at once, the registers would not suffice */
        int32_t numerator0 = entrain_smlad(state0, row[1], (int32_t)row[0]);
        int32_t numerator1 = entrain_smlad(state1, row[1], (int32_t)row[0]);
        for (int32_t p = 1; p < plan.pairs; p++) {
            numerator0 = entrain_smlad(plan.states[p], row[1 + p], numerator0);
            numerator1 = entrain_smlad(other[p], row[1 + p], numerator1);
        }
        first[c] = entrain_read_out_above(oscillator, numerator0, factor0, offset);
        second[c] = entrain_read_out_above(oscillator, numerator1, factor1, offset);
        row += 1 + plan.pairs;
    }
}

/* 1 + z.r of two queries with all keys, [key][query], 0 at least; the largest of each query. */
ENTRAIN_INLINE void entrain_oscillator_closeness(struct entrain_oscillator oscillator,
                                                 const int16_t *anchors,
                                                 struct entrain_oscillator_plan plan,
                                                 int32_t largest[2]) {
    largest[0] = 0;
    largest[1] = 0;
    for (int32_t t = 0; t < oscillator.keys; t += 2) {
        struct entrain_block block = {
            {{oscillator.one, oscillator.one}, {oscillator.one, oscillator.one}}};
        for (int32_t p = 0; p < plan.pairs; p++) {
            const entrain_halves_pair *words = entrain_anchor_words(oscillator, anchors, p) + t;
            const uint32_t even = entrain_low_halves(words[0], words[1]);
            const uint32_t odd = entrain_high_halves(words[0], words[1]);
            for (int32_t q = 0; q < 2; q++) {
                const uint32_t state = plan.states[q * plan.pairs + p];
                block.sums[0][q] = entrain_smlad(state, even, block.sums[0][q]);
                block.sums[1][q] = entrain_smlad(state, odd, block.sums[1][q]);
            }
        }
        for (int32_t k = 0; k < 2; k++) {
            for (int32_t q = 0; q < 2; q++) {
                const bool present = t + k < oscillator.keys;
                const int32_t sum = (present && block.sums[k][q] > 0) ? block.sums[k][q] : 0;
                largest[q] = (sum > largest[q]) ? sum : largest[q];
                plan.closeness[2 * (t + k) + q] = sum;
            }
        }
    }
}

ENTRAIN_INLINE void entrain_oscillator_plain(struct entrain_oscillator oscillator,
                                             const int16_t *anchors,
                                             struct entrain_oscillator_plan plan, int8_t *first,
                                             int8_t *second) {
    int32_t largest[2];
    int32_t factors[2];
    entrain_oscillator_closeness(oscillator, anchors, plan, largest);
    for (int32_t q = 0; q < 2; q++) {
        const struct entrain_closeness_scale scale =
            entrain_closeness_scale(oscillator, largest[q]);
        int32_t total = 0;
        for (int32_t w = 0; w < plan.key_words; w++) {
            const int32_t *pair = plan.closeness + 4 * w + q;
            const int32_t low = entrain_closeness_weight(oscillator, pair[0], scale);
            const int32_t high = entrain_closeness_weight(oscillator, pair[2], scale);
            total += low + high;
            plan.weights[2 * w + q] = entrain_low_halves((uint32_t)low, (uint32_t)high);
        }
        factors[q] = entrain_read_out_factor(oscillator, total);
    }
    const entrain_halves_pair *values = plan.values;
    for (int32_t c = 0; c < oscillator.d_value; c += 2) {
        const struct entrain_block block =
            entrain_counted_products(&values, plan.weights, plan.key_words);
        first[c] = entrain_read_out(oscillator, block.sums[0][0], factors[0]);
        second[c] = entrain_read_out(oscillator, block.sums[0][1], factors[1]);
        if (c + 1 < oscillator.d_value) {
            first[c + 1] = entrain_read_out(oscillator, block.sums[1][0], factors[0]);
            second[c + 1] = entrain_read_out(oscillator, block.sums[1][1], factors[1]);
        }
    }
}

#endif
