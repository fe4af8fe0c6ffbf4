/* Couplings of two queries with SMLAD, their fields, and the states that they settle at. */
#ifndef ENTRAIN_OSCILLATOR_COUPLING_DSP_H
#define ENTRAIN_OSCILLATOR_COUPLING_DSP_H

#include "entrain_oscillator_moments_dsp.h"

/* The weight of a score, given half a step above it. */
ENTRAIN_INLINE int32_t entrain_weight_above(struct entrain_oscillator oscillator, int32_t score,
                                            int32_t half) {
    if (oscillator.coupling == ENTRAIN_RECTIFIED) {
        return entrain_shift_to_unsigned(score, oscillator.coupling_shift, oscillator.weight_bits);
    }
    const int32_t lifted = (score - half) * (1 << oscillator.table_lift);
    const int32_t place = entrain_rounded_high_product(lifted, oscillator.multiplier);
    int32_t weight =
        oscillator.table[entrain_shift_to_unsigned(place + ENTRAIN_TABLE_MIDDLE, 0, 9)];
    if (oscillator.coupling == ENTRAIN_RECTIFIED_TABLE) {
        weight +=
            entrain_shift_to_unsigned(score, oscillator.coupling_shift, oscillator.weight_bits + 1);
    }
    return entrain_shift_to_unsigned(weight, 0, oscillator.weight_bits);
}

/* Couplings of two queries with all keys; one with a key that is not there meets an anchor of 0. */
ENTRAIN_INLINE void entrain_oscillator_couplings(struct entrain_oscillator oscillator,
                                                 struct entrain_oscillator_plan plan) {
    const int32_t half = (oscillator.coupling == ENTRAIN_TABULATED)
                             ? 0
                             : (int32_t)((1u << oscillator.coupling_shift) >> 1);
    const entrain_halves_pair *keys = plan.keys;
    entrain_halves_pair *weights = plan.weights;
    for (int32_t w = 0; w < plan.key_words; w++) {
        const struct entrain_block block =
            entrain_products_above(&keys, plan.queries, plan.channel_words, half);
        for (int32_t q = 0; q < 2; q++) {
            const int32_t low = entrain_weight_above(oscillator, block.sums[0][q], half);
            const int32_t high = entrain_weight_above(oscillator, block.sums[1][q], half);
            weights[q] = entrain_low_halves((uint32_t)low, (uint32_t)high);
        }
        weights += 2;
    }
}

/* Two fields of two queries, [query][component], and the states that they settle at. */
ENTRAIN_INLINE void entrain_oscillator_settle(struct entrain_oscillator oscillator, int32_t head,
                                              const int16_t *anchors,
                                              struct entrain_oscillator_plan plan) {
    const bool separable = oscillator.coupling == ENTRAIN_SEPARABLE;
    const entrain_halves_pair *drive = plan.drive;
    const int32_t components = 2 * plan.pairs;
    const int32_t *bias =
        separable ? plan.bias : oscillator.bias + entrain_head_components(oscillator, head);
    for (int32_t p = 0; p < plan.pairs; p++) {
        const entrain_halves_pair *words = entrain_anchor_words(oscillator, anchors, p);
        const struct entrain_block block =
            separable ? entrain_counted_products(&drive, plan.queries, plan.channel_words)
                      : entrain_counted_products(&words, plan.weights, plan.key_words);
        for (int32_t q = 0; q < 2; q++) {
            for (int32_t o = 0; o < 2; o++) {
                plan.fields[q * components + 2 * p + o] =
                    block.sums[o][q] * (1 << oscillator.lift) + bias[2 * p + o];
            }
        }
    }
    for (int32_t q = 0; q < 2; q++) {
        int16_t *to = (int16_t *)plan.states + q * components;
        to[components - 1] = 0; /* the padding, if there is any */
        entrain_settle(plan.fields + q * components, to, oscillator.d_osc);
    }
}

#endif
