/* One head of linear attention with Helium: blocks of three features and two channels, then of two
 * channels and three queries. */
#ifndef ENTRAIN_LINEAR_ATTENTION_MVE_H
#define ENTRAIN_LINEAR_ATTENTION_MVE_H

#include "entrain_attention_mve.h"

#define ENTRAIN_THREE 3

/* What a head keeps. Channel d_value of moments and sums is that of the weights. */
struct entrain_linear_plan {
    int32_t key_vectors;
    int32_t feature_vectors;
    int32_t channels; /* of a row of sums, up to a multiple of 4 */
    int32_t *totals;  /* [feature, up to a multiple of 3] */
    int32_t *sums;    /* [3][channel] */
    int16_t *keys;    /* [feature / 3][key / 8][3][8] */
    int16_t *values;  /* [channel / 2][key / 8][2][8] */
    int16_t *moments; /* [channel / 2][feature / 8][2][8] */
    int16_t *queries; /* [feature / 8][3][8] */
};

ENTRAIN_INLINE struct entrain_linear_plan entrain_linear_plan(struct entrain_linear linear,
                                                              void *scratch) {
    const int32_t features = (linear.d_head + 2) / 3 * 3;
    struct entrain_linear_plan plan;
    plan.key_vectors = entrain_up_to(linear.keys, ENTRAIN_HALVES) / ENTRAIN_HALVES;
    plan.feature_vectors = entrain_up_to(linear.d_head, ENTRAIN_HALVES) / ENTRAIN_HALVES;
    plan.channels = entrain_up_to(linear.d_value + 1, 4);
    plan.totals = (int32_t *)scratch;
    plan.sums = plan.totals + features;
    plan.keys = (int16_t *)(plan.sums + ENTRAIN_THREE * plan.channels);
    plan.values = plan.keys + features * plan.key_vectors * ENTRAIN_HALVES;
    plan.moments =
        plan.values + entrain_up_to(linear.d_value, 2) * plan.key_vectors * ENTRAIN_HALVES;
    plan.queries =
        plan.moments + entrain_up_to(linear.d_value + 1, 2) * plan.feature_vectors * ENTRAIN_HALVES;
    return plan;
}

/* One feature of all keys, every third vector; its sum. */
ENTRAIN_INLINE int32_t entrain_linear_keys(struct entrain_linear linear, const int8_t *key,
                                           int16_t *to) {
    const uint16x8_t steps = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)linear.key.token);
    int32_t total = 0;
    for (int32_t j = 0; j < linear.keys; j += ENTRAIN_HALVES) {
        const mve_pred16_t present = vctp16q((uint32_t)(linear.keys - j));
        const uint16x8_t bytes =
            vldrbq_gather_offset_z_u16((const uint8_t *)key + j * linear.key.token, steps, present);
        const int16x8_t features =
            vldrhq_gather_shifted_offset_z_s16(linear.key_features, bytes, present);
        total = vaddvaq_s16(total, features);
        vstrhq_s16(to, features);
        to += ENTRAIN_THREE * ENTRAIN_HALVES;
    }
    return total;
}

/* The features of all keys; the largest of their sums. What is beyond the last one is 0. */
ENTRAIN_INLINE int32_t entrain_linear_features(struct entrain_linear linear,
                                               struct entrain_linear_plan plan, int32_t head) {
    const int32_t triple = ENTRAIN_THREE * plan.key_vectors * ENTRAIN_HALVES;
    const int8_t *key = entrain_row(linear.key, head, 0);
    int32_t largest = 0;
    for (int32_t f = 0; f < linear.d_head; f++) {
        int16_t *to = plan.keys + f / 3 * triple + f % 3 * ENTRAIN_HALVES;
        plan.totals[f] = entrain_linear_keys(linear, key + f, to);
        largest = (plan.totals[f] > largest) ? plan.totals[f] : largest;
    }
    for (int32_t f = linear.d_head; f % 3 != 0; f++) {
        int16_t *to = plan.keys + f / 3 * triple + f % 3 * ENTRAIN_HALVES;
        for (int32_t v = 0; v < plan.key_vectors; v++) {
            vstrhq_s16(to + v * ENTRAIN_THREE * ENTRAIN_HALVES, vdupq_n_s16(0));
        }
    }
    return largest;
}

/* Where the moment of a channel and a feature lies. */
ENTRAIN_INLINE int16_t *entrain_moment_place(struct entrain_linear_plan plan, int32_t channel,
                                             int32_t feature) {
    return plan.moments + (channel / 2 * plan.feature_vectors + feature / 8) * 2 * ENTRAIN_HALVES +
           channel % 2 * ENTRAIN_HALVES + feature % 8;
}

ENTRAIN_INLINE void entrain_linear_clear(struct entrain_linear linear,
                                         struct entrain_linear_plan plan) {
    const int32_t count = entrain_up_to(linear.d_value + 1, 2) * plan.feature_vectors;
    for (int32_t v = 0; v < count; v++) {
        vstrhq_s16(plan.moments + v * ENTRAIN_HALVES, vdupq_n_s16(0));
    }
}

/* The moments of features f, f + 1 and f + 2 with all channels. */
ENTRAIN_INLINE void entrain_linear_three(struct entrain_linear linear,
                                         struct entrain_linear_plan plan, int32_t f,
                                         struct entrain_moment_shift shift) {
    const int16_t *values = plan.values;
    const int16_t *keys = plan.keys + f * plan.key_vectors * ENTRAIN_HALVES;
    int16_t *places[ENTRAIN_THREE];
    for (int32_t n = 0; n < ENTRAIN_THREE; n++) {
        places[n] = entrain_moment_place(plan, 0, entrain_least(f + n, linear.d_head - 1));
    }
#pragma GCC unroll 1
    for (int32_t c = 0; c < linear.d_value; c += 2) {
        const struct entrain_six six = entrain_products(&values, keys, plan.key_vectors);
        /* backwards: what is beyond the last feature is overwritten by it */
        for (int32_t n = ENTRAIN_THREE - 1; n >= 0; n--) {
            places[n][0] = (int16_t)entrain_moment(six.sums[n][0], shift);
            places[n][ENTRAIN_HALVES] = (int16_t)entrain_moment(six.sums[n][1], shift);
            places[n] += plan.feature_vectors * 2 * ENTRAIN_HALVES;
        }
    }
}

ENTRAIN_INLINE void entrain_linear_moments(struct entrain_linear linear,
                                           struct entrain_linear_plan plan, int32_t head) {
    const struct entrain_moment_shift shift =
        entrain_moment_shift(linear, entrain_linear_features(linear, plan, head));
    entrain_turn_rows(linear.value, head, linear.keys, linear.d_value, plan.values);
    entrain_linear_clear(linear, plan);
    for (int32_t f = 0; f < linear.d_head; f += ENTRAIN_THREE) {
        entrain_linear_three(linear, plan, f, shift);
    }
    for (int32_t f = 0; f < linear.d_head; f++) {
        *entrain_moment_place(plan, linear.d_value, f) =
            (int16_t)entrain_moment(plan.totals[f] << linear.value_bits, shift);
    }
}

/* The features of a query, every third vector. */
ENTRAIN_INLINE void entrain_linear_query(struct entrain_linear linear, const int8_t *query,
                                         int16_t *to) {
    for (int32_t f = 0; f < linear.d_head; f += ENTRAIN_HALVES) {
        int16x8_t features;
        if (f + ENTRAIN_HALVES <= linear.d_head) {
            features = vldrhq_gather_shifted_offset_s16(linear.query_features,
                                                        vldrbq_u16((const uint8_t *)query + f));
        } else {
            const mve_pred16_t present = vctp16q((uint32_t)(linear.d_head - f));
            features = vldrhq_gather_shifted_offset_z_s16(
                linear.query_features, vldrbq_z_u16((const uint8_t *)query + f, present), present);
        }
        vstrhq_s16(to, features);
        to += ENTRAIN_THREE * ENTRAIN_HALVES;
    }
}

/* What three queries read of all channels. */
ENTRAIN_INLINE void entrain_linear_read(struct entrain_linear linear,
                                        struct entrain_linear_plan plan) {
    const int16_t *moments = plan.moments;
    int32_t *sums = plan.sums;
#pragma GCC unroll 1
    for (int32_t c = 0; c < linear.d_value + 1; c += 2) {
        const struct entrain_six six =
            entrain_products(&moments, plan.queries, plan.feature_vectors);
        for (int32_t n = 0; n < ENTRAIN_THREE; n++) {
            sums[n * plan.channels] = six.sums[n][0];
            sums[n * plan.channels + 1] = six.sums[n][1];
        }
        sums += 2;
    }
}

ENTRAIN_INLINE void entrain_linear_head(struct entrain_linear linear, int32_t head, void *scratch) {
    const struct entrain_linear_plan plan = entrain_linear_plan(linear, scratch);
    entrain_linear_moments(linear, plan, head);
    for (int32_t i = 0; i < linear.queries; i += ENTRAIN_THREE) {
        for (int32_t n = 0; n < ENTRAIN_THREE; n++) {
            const int32_t token = entrain_least(i + n, linear.queries - 1);
            entrain_linear_query(linear, entrain_row(linear.query, head, token),
                                 plan.queries + n * ENTRAIN_HALVES);
        }
        entrain_linear_read(linear, plan);
        for (int32_t n = 0; n < ENTRAIN_THREE; n++) {
            const int32_t token = entrain_least(i + n, linear.queries - 1);
            const int32_t *sums = plan.sums + n * plan.channels;
            const int32_t factor = entrain_linear_factor(linear, sums[linear.d_value]);
            entrain_divide_row(sums, factor, linear.shift, linear.result, linear.d_value,
                               entrain_result_row(linear.result, head, token));
        }
    }
}

#endif
