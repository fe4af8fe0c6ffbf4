/* Read-outs of four settled oscillators with Helium. */
#ifndef ENTRAIN_OSCILLATOR_READ_OUT_MVE_H
#define ENTRAIN_OSCILLATOR_READ_OUT_MVE_H

#include "entrain_oscillator_moments_mve.h"

/* x / 2^shift to nearest, halves upwards, as bytes, for a shift from 1 to 22; the upper bytes of a
 * word are left over. (Binutils 2.40 assembles the instructions that do not round as those that
 * do.) */
ENTRAIN_INLINE int32x4_t entrain_four_bytes(int32x4_t x, int32_t shift, bool is_unsigned) {
    if (shift > 16) {
        const int32x4_t low = vdupq_n_s32(is_unsigned ? 0 : INT8_MIN);
        const int32x4_t high = vdupq_n_s32(is_unsigned ? UINT8_MAX : INT8_MAX);
        return vminq_s32(vmaxq_s32(vrshlq_n_s32(x, -shift), low), high);
    }
    /* in place, which the intrinsics are not */
    if (is_unsigned) {
        __asm("vqrshrunb.s32 %q0, %q0, %1\n\tvqmovnb.u16 %q0, %q0" : "+w"(x) : "i"(shift));
    } else {
        __asm("vqrshrnb.s32 %q0, %q0, %1\n\tvqmovnb.s16 %q0, %q0" : "+w"(x) : "i"(shift));
    }
    return x;
}

/* Four numerators over their divisor, as bytes. */
ENTRAIN_INLINE void entrain_four_read_outs(struct entrain_oscillator oscillator,
                                           int32x4_t numerators, int32x4_t factors, int8_t *to,
                                           int32_t present) {
    const int32_t shift = oscillator.shift - 32;
    const int32_t offset = oscillator.result.zero_point * (1 << shift);
    const int32x4_t products = vmulhq_s32(numerators, factors);
    const int32x4_t quotients = (offset == 0) ? products : vaddq_n_s32(products, offset);
    const int32x4_t bytes = entrain_four_bytes(quotients, shift, oscillator.result.is_unsigned);
    if (present >= ENTRAIN_LANES_OF_WORDS) {
        vstrbq_s32(to, bytes);
    } else {
        vstrbq_p_s32(to, bytes, vctp32q((uint32_t)present));
    }
}

/* entrain_read_out_factor of four queries' weights; only the division is made one by one. */
ENTRAIN_INLINE int32x4_t entrain_four_factors(struct entrain_oscillator oscillator,
                                              int32x4_t weights) {
    const uint32x4_t divisors =
        vreinterpretq_u32_s32(vmaxq_s32(weights, vdupq_n_s32(oscillator.least)));
    const int32x4_t zeros = vreinterpretq_s32_u32(vclzq_u32(divisors));
    const uint32x4_t tops = vshrq_n_u32(vshlq_u32(divisors, zeros), 16);
    uint32x4_t inverses = tops;
    inverses = vsetq_lane_u32(UINT32_MAX / vgetq_lane_u32(tops, 0), inverses, 0);
    inverses = vsetq_lane_u32(UINT32_MAX / vgetq_lane_u32(tops, 1), inverses, 1);
    inverses = vsetq_lane_u32(UINT32_MAX / vgetq_lane_u32(tops, 2), inverses, 2);
    inverses = vsetq_lane_u32(UINT32_MAX / vgetq_lane_u32(tops, 3), inverses, 3);
    const uint32x4_t products = vmulq_n_u32(inverses, oscillator.quotient);
    return vreinterpretq_s32_u32(vshlq_u32(products, vsubq_n_s32(zeros, oscillator.drop)));
}

ENTRAIN_INLINE void
entrain_oscillator_factorised(struct entrain_oscillator oscillator, int32_t head,
                              struct entrain_oscillator_plan plan,
                              int8_t *const results[ENTRAIN_OSCILLATOR_QUERIES]) {
    const int16_t *sums = oscillator.anchor_sums + entrain_head_components(oscillator, head);
    int32x4_t weights = vdupq_n_s32(oscillator.token_weight);
    for (int32_t o = 0; o < oscillator.d_osc; o++) {
        const int32x4_t states = vldrwq_s32(plan.fields + o * ENTRAIN_OSCILLATOR_QUERIES);
        weights = vmlaq_n_s32(weights, states, sums[o]);
    }
    int32_t factors[ENTRAIN_OSCILLATOR_QUERIES];
    vstrwq_s32(factors, entrain_four_factors(oscillator, weights));
    for (int32_t q = 0; q < ENTRAIN_OSCILLATOR_QUERIES; q++) {
        const int32_t *states = plan.fields + q;
        const int32x4_t divisors = vdupq_n_s32(factors[q]);
        const int32_t state0 = states[0];
        const int32_t state1 = states[ENTRAIN_OSCILLATOR_QUERIES]; /* 0 if there is but one */
        for (int32_t c = 0; c < oscillator.d_value; c += ENTRAIN_LANES_OF_WORDS) {
            ENTRAIN_BARRIER(); /* of all channels at once, the registers would not suffice */
            int32x4_t numerators = vldrwq_s32(plan.totals + c);
            numerators = vmlaq_n_s32(numerators, vldrhq_s32(plan.moments + c), state0);
            numerators =
                vmlaq_n_s32(numerators, vldrhq_s32(plan.moments + plan.values + c), state1);
            for (int32_t o = 2; o < oscillator.d_osc; o++) {
                const int32x4_t moments = vldrhq_s32(plan.moments + o * plan.values + c);
                numerators =
                    vmlaq_n_s32(numerators, moments, states[o * ENTRAIN_OSCILLATOR_QUERIES]);
            }
            entrain_four_read_outs(oscillator, numerators, divisors, results[q] + c,
                                   oscillator.d_value - c);
        }
    }
}

/* 1 + z.r of one query with all keys, 0 at least: of every eight the even ones first. The largest
 * of them. */
ENTRAIN_INLINE int32_t entrain_oscillator_closeness(struct entrain_oscillator oscillator,
                                                    const int16_t *anchors, const int32_t *states,
                                                    struct entrain_oscillator_plan plan) {
    const int32x4_t none = vdupq_n_s32(0);
    int32_t largest = 0;
    for (int32_t t = 0; t < oscillator.keys; t += ENTRAIN_LANES_OF_HALVES) {
        int32x4_t even = vdupq_n_s32(oscillator.one);
        int32x4_t odd = even;
        for (int32_t o = 0; o < oscillator.d_osc; o += 2) {
            const int16_t *place = anchors + (o / 2) * entrain_anchor_pair(oscillator) + 2 * t;
            const int32x4x2_t pair = vld2q_s32((const int32_t *)(const void *)place);
            for (int32_t k = 0; k < 2 && o + k < oscillator.d_osc; k++) {
                const int16x8_t r = vreinterpretq_s16_s32(pair.val[k]);
                const int16_t state = (int16_t)states[(o + k) * ENTRAIN_OSCILLATOR_QUERIES];
                even = vaddq_s32(even, vmullbq_int_s16(r, vdupq_n_s16(state)));
                odd = vaddq_s32(odd, vmulltq_int_s16(r, vdupq_n_s16(state)));
            }
        }
        const uint32_t present = (uint32_t)(oscillator.keys - t);
        even = vpselq_s32(vmaxq_s32(even, none), none, vctp32q((present + 1u) / 2u));
        odd = vpselq_s32(vmaxq_s32(odd, none), none, vctp32q(present / 2u));
        largest = vmaxvq_s32(largest, vmaxq_s32(even, odd));
        vstrwq_s32(plan.closeness + t, even);
        vstrwq_s32(plan.closeness + t + ENTRAIN_LANES_OF_WORDS, odd);
    }
    return largest;
}

ENTRAIN_INLINE uint32x4_t entrain_four_closeness_weights(struct entrain_oscillator oscillator,
                                                         const int32_t *closeness,
                                                         struct entrain_closeness_scale scale) {
    const uint32x4_t lifted = vshlq_r_u32(vreinterpretq_u32_s32(vldrwq_s32(closeness)), scale.left);
    const uint32x4_t base = vshlq_n_u32(vmulhq_u32(lifted, vdupq_n_u32(scale.inverse)), 1);
    uint32x4_t power = base;
    for (uint32_t bit = entrain_first_square(oscillator.exponent); bit != 0; bit >>= 1) {
        power = vmulhq_u32(power, power);
        if (((uint32_t)oscillator.exponent & bit) != 0) {
            power = vmulhq_u32(power, base);
        }
    }
    return vshlq_r_u32(power, oscillator.read_out_bits - 32);
}

/* The read-out weights of one query, and its factor. */
ENTRAIN_INLINE int32_t entrain_oscillator_weights(struct entrain_oscillator oscillator,
                                                  const int16_t *anchors, const int32_t *states,
                                                  struct entrain_oscillator_plan plan,
                                                  int16_t *weights) {
    const int32_t largest = entrain_oscillator_closeness(oscillator, anchors, states, plan);
    const struct entrain_closeness_scale scale = entrain_closeness_scale(oscillator, largest);
    uint32_t total = 0;
    for (int32_t t = 0; t < oscillator.keys; t += ENTRAIN_LANES_OF_HALVES) {
        const int32_t *closeness = plan.closeness + t;
        const uint32x4_t even = entrain_four_closeness_weights(oscillator, closeness, scale);
        const uint32x4_t odd =
            entrain_four_closeness_weights(oscillator, closeness + ENTRAIN_LANES_OF_WORDS, scale);
        const uint16x8_t halves = vmovntq_u32(vreinterpretq_u16_u32(even), odd);
        vstrhq_s16(weights + t, vreinterpretq_s16_u16(halves));
        total = vaddvaq_u32(vaddvaq_u32(total, even), odd);
    }
    return entrain_read_out_factor(oscillator, (int32_t)total);
}

/* Weighted sums of values, four channels of four queries at a time. */
ENTRAIN_INLINE void entrain_oscillator_plain(struct entrain_oscillator oscillator, int32_t head,
                                             const int16_t *anchors,
                                             struct entrain_oscillator_plan plan,
                                             int8_t *const results[ENTRAIN_OSCILLATOR_QUERIES]) {
    int32_t factors[ENTRAIN_OSCILLATOR_QUERIES];
    for (int32_t q = 0; q < ENTRAIN_OSCILLATOR_QUERIES; q++) {
        factors[q] = entrain_oscillator_weights(oscillator, anchors, plan.fields + q, plan,
                                                plan.weights + q * plan.lanes);
    }
    for (int32_t c = 0; c < oscillator.d_value; c += ENTRAIN_LANES_OF_WORDS) {
        const int8_t *value = entrain_row(oscillator.value, head, 0) + c;
        const int16_t *weights = plan.weights;
        const int32_t present = oscillator.d_value - c;
        int32x4_t sums[ENTRAIN_OSCILLATOR_QUERIES];
        for (int32_t q = 0; q < ENTRAIN_OSCILLATOR_QUERIES; q++) {
            sums[q] = vdupq_n_s32(0);
        }
        for (int32_t j = 0; j < oscillator.keys; j++) {
            const int32x4_t channels = entrain_four_words(oscillator.value, value, present, false);
            for (int32_t q = 0; q < ENTRAIN_OSCILLATOR_QUERIES; q++) {
                sums[q] = vmlaq_n_s32(sums[q], channels, weights[q * plan.lanes]);
            }
            value += oscillator.value.token;
            weights++;
        }
        for (int32_t q = 0; q < ENTRAIN_OSCILLATOR_QUERIES; q++) {
            entrain_four_read_outs(oscillator, sums[q], vdupq_n_s32(factors[q]), results[q] + c,
                                   present);
        }
    }
}

#endif
