/* One head of softmax attention with Helium, three queries at a time.
 *
 * Scores are products of bytes as they are stored; what the zero points add comes to the steps of
 * a score, of which it is a linear function. */
#ifndef ENTRAIN_SOFTMAX_ATTENTION_MVE_H
#define ENTRAIN_SOFTMAX_ATTENTION_MVE_H

#include "entrain_attention_mve.h"

#define ENTRAIN_QUERIES 3 /* with two keys or channels, as many sums as there are registers for */

/* What a head keeps. */
struct entrain_softmax_plan {
    int32_t width; /* of a key */
    int32_t lanes; /* of a row of keys, rounded up to whole vectors */
    int8_t *keys;
    int32_t *key_steps; /* [2][lanes / 2]: what a query's zero point adds for each key */
    int32_t *sums;      /* [ENTRAIN_QUERIES][channels, up to a multiple of 4] */
    int16_t *values;    /* [channel / 2][key / 8][2][8] */
    int32_t *scores;    /* [ENTRAIN_QUERIES][2][lanes / 2]: of even keys, of odd ones */
    uint16_t *steps;    /* [lanes]: of one query */
    int16_t *weights;   /* [key / 8][ENTRAIN_QUERIES][8] */
};

ENTRAIN_INLINE struct entrain_softmax_plan entrain_softmax_plan(struct entrain_softmax softmax,
                                                                void *scratch) {
    struct entrain_softmax_plan plan;
    plan.width = entrain_up_to(softmax.d_head, ENTRAIN_BYTES);
    plan.lanes = entrain_up_to(softmax.keys, ENTRAIN_HALVES);
    plan.scores = (int32_t *)scratch;
    plan.key_steps = plan.scores + ENTRAIN_QUERIES * plan.lanes;
    plan.sums = plan.key_steps + plan.lanes;
    plan.steps = (uint16_t *)(plan.sums + ENTRAIN_QUERIES * entrain_up_to(softmax.d_value, 4));
    plan.values = (int16_t *)(plan.steps + plan.lanes);
    plan.weights = plan.values + entrain_up_to(softmax.d_value, 2) * plan.lanes;
    plan.keys = (int8_t *)(plan.weights + ENTRAIN_QUERIES * plan.lanes);
    return plan;
}

ENTRAIN_INLINE int32_t entrain_sum_of_bytes(const int8_t *bytes, int32_t width) {
    int32_t sum = 0;
    for (int32_t c = 0; c < width; c += ENTRAIN_BYTES) {
        sum = vaddvaq_s8(sum, vldrbq_s8(bytes + c));
    }
    return sum;
}

/* -zero_point of queries * sum of each key, in steps. */
ENTRAIN_INLINE void entrain_softmax_key_steps(struct entrain_softmax softmax,
                                              struct entrain_softmax_plan plan) {
    const uint32_t factor =
        (uint32_t)-entrain_signed_zero_point(softmax.query) * softmax.multiplier;
    for (int32_t j = 0; j < softmax.keys; j++) {
        const int32_t sum = entrain_sum_of_bytes(plan.keys + j * plan.width, plan.width);
        plan.key_steps[(j % 2) * (plan.lanes / 2) + j / 2] = (int32_t)((uint32_t)sum * factor);
    }
}

/* Products of ENTRAIN_QUERIES queries with all keys, as stored; an odd last key is read twice. */
ENTRAIN_INLINE void entrain_softmax_products(struct entrain_softmax softmax,
                                             struct entrain_softmax_plan plan,
                                             const int8_t *const queries[ENTRAIN_QUERIES]) {
    const int8_t *key = plan.keys;
    int32_t *scores = plan.scores;
    for (int32_t j = 0; j < softmax.keys; j += 2) {
        int32_t sums[ENTRAIN_QUERIES][2];
        for (int32_t c = 0; c < plan.width; c += ENTRAIN_BYTES) {
            const int8x16_t k0 = vldrbq_s8(key + c);
            const int8x16_t k1 = vldrbq_s8(key + plan.width + c);
            for (int32_t i = 0; i < ENTRAIN_QUERIES; i++) {
                const int8x16_t q =
                    entrain_signed_bytes(softmax.query, queries[i], c, softmax.d_head);
                sums[i][0] = (c == 0) ? vmladavq_s8(q, k0) : vmladavaq_s8(sums[i][0], q, k0);
                sums[i][1] = (c == 0) ? vmladavq_s8(q, k1) : vmladavaq_s8(sums[i][1], q, k1);
            }
        }
        for (int32_t i = 0; i < ENTRAIN_QUERIES; i++) {
            scores[i * plan.lanes] = sums[i][0];
            scores[i * plan.lanes + plan.lanes / 2] = sums[i][1];
        }
        key += 2 * plan.width;
        scores++;
    }
}

/* What a query's zero points add to each of its steps. */
ENTRAIN_INLINE uint32_t entrain_softmax_query_steps(struct entrain_softmax softmax,
                                                    const int8_t *query) {
    const int32_t zero = entrain_signed_zero_point(softmax.query);
    const int32_t key_zero = entrain_signed_zero_point(softmax.key);
    int32_t sum = -softmax.d_head * zero;
    for (int32_t c = 0; c < softmax.d_head; c += ENTRAIN_BYTES) {
        sum = vaddvaq_s8(sum, entrain_signed_bytes(softmax.query, query, c, softmax.d_head));
    }
    return (uint32_t)(-key_zero * sum) * softmax.multiplier + ENTRAIN_SCORE_BIAS;
}

/* Products become steps; the highest one. Behind the last key they are 0. */
ENTRAIN_INLINE uint32_t entrain_softmax_steps(struct entrain_softmax softmax,
                                              struct entrain_softmax_plan plan,
                                              const int32_t *scores, uint32_t added) {
    uint16x8_t highest = vdupq_n_u16(0);
    const int32x4_t multiplier = vdupq_n_s32((int32_t)softmax.multiplier);
    for (int32_t j = 0; j < softmax.keys; j += ENTRAIN_HALVES) {
        const int32_t *products = scores + j / 2;
        int32x4_t even = vmlasq_n_s32(vldrwq_s32(products), multiplier, (int32_t)added);
        int32x4_t odd =
            vmlasq_n_s32(vldrwq_s32(products + plan.lanes / 2), multiplier, (int32_t)added);
        if (entrain_signed_zero_point(softmax.query) != 0) {
            const int32_t *by_key = plan.key_steps + j / 2;
            even = vaddq_s32(even, vldrwq_s32(by_key));
            odd = vaddq_s32(odd, vldrwq_s32(by_key + plan.lanes / 2));
        }
        /* the high halves of both */
        uint16x8_t steps = vreinterpretq_u16_s32(vsriq_n_s32(odd, even, 16));
        if (j + ENTRAIN_HALVES > softmax.keys) {
            const mve_pred16_t present = vctp16q((uint32_t)(softmax.keys - j));
            steps = vpselq_u16(steps, vdupq_n_u16(0), present);
        }
        highest = vmaxq_u16(highest, steps);
        vstrhq_u16(plan.steps + j, steps);
    }
    return vmaxvq_u16(0, highest);
}

/* Steps become weights; their sum. */
ENTRAIN_INLINE int32_t entrain_softmax_weights(struct entrain_softmax softmax,
                                               struct entrain_softmax_plan plan, uint32_t highest,
                                               int16_t *weights) {
    const uint16x8_t lowest = vdupq_n_u16((uint16_t)(highest - ((uint32_t)softmax.entries - 1u)));
    int32_t sum = 0;
    for (int32_t j = 0; j < plan.lanes; j += ENTRAIN_HALVES) {
        const uint16x8_t places = vqsubq_u16(vldrhq_u16(plan.steps + j), lowest);
        const int16x8_t found = vldrhq_gather_shifted_offset_s16(softmax.table, places);
        sum = vaddvaq_s16(sum, found);
        vstrhq_s16(weights + ENTRAIN_QUERIES * j, found);
    }
    return sum;
}

/* The weights of ENTRAIN_QUERIES queries, and the factors of their sums. */
ENTRAIN_INLINE void entrain_softmax_weigh(struct entrain_softmax softmax,
                                          struct entrain_softmax_plan plan,
                                          const int8_t *const queries[ENTRAIN_QUERIES],
                                          int32_t factors[ENTRAIN_QUERIES]) {
    for (int32_t n = 0; n < ENTRAIN_QUERIES; n++) {
        const uint32_t added = entrain_softmax_query_steps(softmax, queries[n]);
        const uint32_t highest =
            entrain_softmax_steps(softmax, plan, plan.scores + n * plan.lanes, added);
        const int32_t sum =
            entrain_softmax_weights(softmax, plan, highest, plan.weights + n * ENTRAIN_HALVES);
        factors[n] = entrain_row_factor(sum, softmax.quotient, softmax.drop);
    }
}

/* The sums of all channels' weighed values. */
ENTRAIN_INLINE void entrain_softmax_sums(struct entrain_softmax softmax,
                                         struct entrain_softmax_plan plan) {
    const int32_t stride = entrain_up_to(softmax.d_value, 4);
    const int16_t *values = plan.values;
    int32_t *sums = plan.sums;
#pragma GCC unroll 1
    for (int32_t c = 0; c < softmax.d_value; c += 2) {
        const struct entrain_six six =
            entrain_products(&values, plan.weights, plan.lanes / ENTRAIN_HALVES);
        for (int32_t n = 0; n < ENTRAIN_QUERIES; n++) {
            sums[n * stride] = six.sums[n][0];
            sums[n * stride + 1] = six.sums[n][1];
        }
        sums += 2;
    }
}

ENTRAIN_INLINE void entrain_softmax_head(struct entrain_softmax softmax, int32_t head,
                                         void *scratch) {
    const struct entrain_softmax_plan plan = entrain_softmax_plan(softmax, scratch);
    entrain_pack_rows(softmax.key, head, softmax.keys, softmax.d_head, plan.width, plan.keys);
    if (entrain_signed_zero_point(softmax.query) != 0) {
        entrain_softmax_key_steps(softmax, plan);
    }
    entrain_turn_rows(softmax.value, head, softmax.keys, softmax.d_value, plan.values);
    for (int32_t i = 0; i < softmax.queries; i += ENTRAIN_QUERIES) {
        const int8_t *queries[ENTRAIN_QUERIES];
        int8_t *results[ENTRAIN_QUERIES];
        int32_t factors[ENTRAIN_QUERIES];
        for (int32_t n = 0; n < ENTRAIN_QUERIES; n++) {
            const int32_t token = entrain_least(i + n, softmax.queries - 1);
            queries[n] = entrain_row(softmax.query, head, token);
            results[n] = entrain_result_row(softmax.result, head, token);
        }
        entrain_softmax_products(softmax, plan, queries);
        entrain_softmax_weigh(softmax, plan, queries, factors);
        entrain_softmax_sums(softmax, plan);
        for (int32_t n = 0; n < ENTRAIN_QUERIES; n++) {
            entrain_divide_row(plan.sums + n * entrain_up_to(softmax.d_value, 4), factors[n],
                               softmax.shift, softmax.result, softmax.d_value, results[n]);
        }
    }
}

#endif
