/* Couplings of pairs of tokens with Helium, and the fields that they add up to. */
#ifndef ENTRAIN_OSCILLATOR_COUPLING_MVE_H
#define ENTRAIN_OSCILLATOR_COUPLING_MVE_H

#include "entrain_oscillator_moments_mve.h"

/* A query with its first channels at hand. */
struct entrain_query {
    const int8_t *row;
    int8x16_t bytes;
};

/* Whether rows multiply as bytes, as they are stored. */
ENTRAIN_INLINE bool entrain_are_bytes(struct entrain_oscillator oscillator) {
    return !oscillator.query.is_unsigned && !oscillator.key.is_unsigned &&
           oscillator.query.zero_point == 0 && oscillator.key.zero_point == 0;
}

ENTRAIN_INLINE int8x16_t entrain_sixteen_bytes(const int8_t *row, int32_t present) {
    return (present >= ENTRAIN_LANES_OF_BYTES) ? vldrbq_s8(row)
                                               : vldrbq_z_s8(row, vctp8q((uint32_t)present));
}

/* Scores of two queries with every other one of eight keys. */
struct entrain_scores {
    int32x4_t first;
    int32x4_t second;
};

/* Into two lanes of the scores at a time, for which gcc has no intrinsic (and its vcreateq swaps
 * them): the register named first goes to the lower lane. */
#define ENTRAIN_EVEN_LANES(scores, low, high)                                                      \
    __asm volatile("vmov %q0[2], %q0[0], %1, %2" : "=w"(scores) : "r"(low), "r"(high) : "memory")
#define ENTRAIN_ODD_LANES(scores, low, high)                                                       \
    __asm volatile("vmov %q0[3], %q0[1], %1, %2" : "+w"(scores) : "r"(low), "r"(high) : "memory")

ENTRAIN_INLINE int32_t entrain_score(struct entrain_oscillator oscillator,
                                     struct entrain_query query, const int8_t *key) {
    const int32_t channels = oscillator.d_head;
    int32_t sum = 0;
    if (entrain_are_bytes(oscillator)) {
        sum = vmladavq_s8(query.bytes, entrain_sixteen_bytes(key, channels));
        for (int32_t c = ENTRAIN_LANES_OF_BYTES; c < channels; c += ENTRAIN_LANES_OF_BYTES) {
            sum = vmladavaq_s8(sum, entrain_sixteen_bytes(query.row + c, channels - c),
                               entrain_sixteen_bytes(key + c, channels - c));
        }
        return sum;
    }
    for (int32_t c = 0; c < channels; c += ENTRAIN_LANES_OF_HALVES) {
        const int16x8_t halves =
            entrain_eight_halves(oscillator.query, query.row + c, channels - c, false);
        sum = vmladavaq_s16(sum, halves,
                            entrain_eight_halves(oscillator.key, key + c, channels - c, false));
    }
    return sum;
}

/* The scores of a key and the fourth behind it: lanes 0 and 2, or 1 and 3 if odd. */
ENTRAIN_INLINE void entrain_add_scores(struct entrain_oscillator oscillator,
                                       const struct entrain_query queries[2], const int8_t *low,
                                       const int8_t *high, bool odd,
                                       struct entrain_scores *scores) {
    if (oscillator.d_head <= ENTRAIN_LANES_OF_BYTES && entrain_are_bytes(oscillator)) {
        const int8x16_t a = entrain_sixteen_bytes(low, oscillator.d_head);
        const int8x16_t b = entrain_sixteen_bytes(high, oscillator.d_head);
        const int32_t a0 = vmladavq_s8(queries[0].bytes, a);
        const int32_t b0 = vmladavq_s8(queries[0].bytes, b);
        if (odd) {
            ENTRAIN_ODD_LANES(scores->first, a0, b0);
        } else {
            ENTRAIN_EVEN_LANES(scores->first, a0, b0);
        }
        const int32_t a1 = vmladavq_s8(queries[1].bytes, a);
        const int32_t b1 = vmladavq_s8(queries[1].bytes, b);
        if (odd) {
            ENTRAIN_ODD_LANES(scores->second, a1, b1);
        } else {
            ENTRAIN_EVEN_LANES(scores->second, a1, b1);
        }
        return;
    }
    const int32_t a0 = entrain_score(oscillator, queries[0], low);
    const int32_t b0 = entrain_score(oscillator, queries[0], high);
    const int32_t a1 = entrain_score(oscillator, queries[1], low);
    const int32_t b1 = entrain_score(oscillator, queries[1], high);
    if (odd) {
        ENTRAIN_ODD_LANES(scores->first, a0, b0);
        ENTRAIN_ODD_LANES(scores->second, a1, b1);
    } else {
        ENTRAIN_EVEN_LANES(scores->first, a0, b0);
        ENTRAIN_EVEN_LANES(scores->second, a1, b1);
    }
}

/* The table's part of four weights, and the rectified one. */
ENTRAIN_INLINE int32x4_t entrain_four_weights(struct entrain_oscillator oscillator,
                                              int32x4_t scores) {
    const int32x4_t lifted = vshlq_r_s32(scores, oscillator.table_lift);
    const int32x4_t places = vrmulhq_s32(lifted, vdupq_n_s32(oscillator.multiplier));
    const int32x4_t kept = vminq_s32(vmaxq_s32(places, vdupq_n_s32(-ENTRAIN_TABLE_MIDDLE)),
                                     vdupq_n_s32(ENTRAIN_TABLE_MIDDLE - 1));
    const uint32x4_t offsets = vreinterpretq_u32_s32(vaddq_n_s32(kept, ENTRAIN_TABLE_MIDDLE));
    int32x4_t weights = vldrhq_gather_shifted_offset_s32(oscillator.table, offsets);
    if (oscillator.coupling == ENTRAIN_RECTIFIED_TABLE) {
        const int32x4_t rounded = vrshlq_n_s32(scores, -oscillator.coupling_shift);
        weights = vaddq_s32(weights, vmaxq_s32(rounded, vdupq_n_s32(0)));
    }
    return vminq_s32(weights, vdupq_n_s32((1 << oscillator.weight_bits) - 1));
}

/* Eight weights of one query: of the keys 0, 2, 4, 6 and 1, 3, 5, 7. */
ENTRAIN_INLINE int16x8_t entrain_eight_weights(struct entrain_oscillator oscillator, int32x4_t even,
                                               int32x4_t odd) {
    if (oscillator.coupling != ENTRAIN_RECTIFIED) {
        const int32x4_t low = entrain_four_weights(oscillator, even);
        const int32x4_t high = entrain_four_weights(oscillator, odd);
        return vmovntq_s32(vreinterpretq_s16_s32(low), high);
    }
    if (oscillator.coupling_shift == 0) {
        __asm("vqmovunb.s32 %q0, %q0\n\tvqmovunt.s32 %q0, %q1" : "+w"(even) : "w"(odd));
    } else {
        __asm("vqrshrunb.s32 %q0, %q0, %2\n\tvqrshrunt.s32 %q0, %q1, %2"
              : "+w"(even)
              : "w"(odd), "i"(oscillator.coupling_shift));
    }
    const uint16x8_t weights = vreinterpretq_u16_s32(even);
    const uint16_t most = (uint16_t)((1 << oscillator.weight_bits) - 1);
    return vreinterpretq_s16_u16(vminq_u16(weights, vdupq_n_u16(most)));
}

/* Eight keys, `present` of which are there, with two queries. */
ENTRAIN_INLINE void entrain_eight_couplings(struct entrain_oscillator oscillator,
                                            const struct entrain_query queries[2],
                                            const int8_t *key, int32_t present, int16_t *first,
                                            int16_t *second) {
    const int8_t *fourth = key + ((present > 4) ? 4 * oscillator.key.token : 0);
    __asm("" : "+r"(fourth)); /* two places, from both of which the next keys are near */
    struct entrain_scores even, odd;
    entrain_add_scores(oscillator, queries, key, fourth, false, &even);
    odd = even;
    for (int32_t k = 1; k < entrain_least(present, 4); k++) {
        const int8_t *low = key + k * oscillator.key.token;
        const int8_t *high = (present > k + 4) ? fourth + k * oscillator.key.token : low;
        entrain_add_scores(oscillator, queries, low, high, k >= 2, (k % 2 == 0) ? &even : &odd);
    }
    vstrhq_s16(first, entrain_eight_weights(oscillator, even.first, odd.first));
    vstrhq_s16(second, entrain_eight_weights(oscillator, even.second, odd.second));
}

/* Couplings of two queries with all keys; one with a key that is not there meets an anchor of 0. */
ENTRAIN_INLINE void entrain_oscillator_couplings(struct entrain_oscillator oscillator, int32_t head,
                                                 const int8_t *first, const int8_t *second,
                                                 int16_t *weights, int32_t lanes) {
    const struct entrain_query queries[2] = {
        {first, entrain_sixteen_bytes(first, oscillator.d_head)},
        {second, entrain_sixteen_bytes(second, oscillator.d_head)}};
    const int8_t *key = entrain_row(oscillator.key, head, 0);
    const int32_t rest = oscillator.keys % ENTRAIN_LANES_OF_HALVES;
    for (int32_t t = 0; t < oscillator.keys - rest; t += ENTRAIN_LANES_OF_HALVES) {
        entrain_eight_couplings(oscillator, queries, key, ENTRAIN_LANES_OF_HALVES, weights + t,
                                weights + lanes + t);
        key += ENTRAIN_LANES_OF_HALVES * oscillator.key.token;
    }
    if (rest > 0) {
        int16_t *last = weights + oscillator.keys - rest;
        entrain_eight_couplings(oscillator, queries, key, rest, last, last + lanes);
    }
}

/* The fields of two queries from their couplings, two components at a time. */
ENTRAIN_INLINE void entrain_two_fields(struct entrain_oscillator oscillator, const int16_t *anchors,
                                       const int16_t *weights, struct entrain_oscillator_plan plan,
                                       const int32_t *bias, int32_t *fields) {
    const int32_t scale = 1 << oscillator.lift;
    const int32_t *pairs = (const int32_t *)(const void *)anchors;
    for (int32_t o = 0; o < plan.components; o += 2) {
        const int16_t *row = weights;
        int32_t sums[2][2] = {{0, 0}, {0, 0}};
#pragma GCC unroll 1
        for (int32_t t = 0; t < plan.lanes; t += ENTRAIN_LANES_OF_HALVES) {
            const int32x4x2_t pair = vld2q_s32(pairs);
            const int16x8_t r0 = vreinterpretq_s16_s32(pair.val[0]);
            const int16x8_t r1 = vreinterpretq_s16_s32(pair.val[1]);
            const int16x8_t first = vldrhq_s16(row);
            const int16x8_t second = vldrhq_s16(row + plan.lanes);
            sums[0][0] = vmladavaq_s16(sums[0][0], first, r0);
            sums[0][1] = vmladavaq_s16(sums[0][1], first, r1);
            sums[1][0] = vmladavaq_s16(sums[1][0], second, r0);
            sums[1][1] = vmladavaq_s16(sums[1][1], second, r1);
            pairs += ENTRAIN_LANES_OF_HALVES;
            row += ENTRAIN_LANES_OF_HALVES;
        }
        for (int32_t k = 0; k < 2; k++) {
            int32_t *to = fields + (o + k) * ENTRAIN_OSCILLATOR_QUERIES;
            to[0] = sums[0][k] * scale + bias[o + k];
            to[1] = sums[1][k] * scale + bias[o + k];
        }
    }
}

/* The field of one query from the drive. */
ENTRAIN_INLINE void entrain_separable_field(struct entrain_oscillator oscillator,
                                            const int8_t *query,
                                            struct entrain_oscillator_plan plan, int32_t *fields) {
    for (int32_t o = 0; o < plan.components; o++) {
        int32_t sum = 0;
        for (int32_t c = 0; c < oscillator.d_head; c += ENTRAIN_LANES_OF_HALVES) {
            const int16x8_t channels =
                entrain_eight_halves(oscillator.query, query + c, oscillator.d_head - c, true);
            sum = vmladavaq_s16(sum, channels, vldrhq_s16(plan.drive + o * plan.channels + c));
        }
        fields[o * ENTRAIN_OSCILLATOR_QUERIES] = sum * (1 << oscillator.lift) + plan.bias[o];
    }
}

#endif
