/* One head of linear attention with SMLAD: blocks of two features and two channels, then of two
 * channels and two queries. */
#ifndef ENTRAIN_LINEAR_ATTENTION_DSP_H
#define ENTRAIN_LINEAR_ATTENTION_DSP_H

#include "entrain_attention_dsp.h"

/* What a head keeps, each two rows side by side. Channel d_value of the moments is that of the
 * weights. */
struct entrain_linear_plan {
    int32_t key_words;
    int32_t feature_words;
    int32_t *totals;              /* [feature] */
    entrain_halves_pair *keys;    /* [feature / 2][key word][2] */
    entrain_halves_pair *values;  /* [channel / 2][key word][2] */
    entrain_halves_pair *moments; /* [channel / 2][feature word][2] */
    entrain_halves_pair *queries; /* [feature word][2] */
};

ENTRAIN_INLINE struct entrain_linear_plan entrain_linear_plan(struct entrain_linear linear,
                                                              void *scratch) {
    struct entrain_linear_plan plan;
    plan.key_words = entrain_up_to(linear.keys, 2) / 2;
    plan.feature_words = entrain_up_to(linear.d_head, 2) / 2;
    plan.totals = (int32_t *)scratch;
    plan.keys = (entrain_halves_pair *)(plan.totals + linear.d_head);
    plan.values = plan.keys + 2 * plan.feature_words * plan.key_words;
    plan.moments = plan.values + entrain_up_to(linear.d_value, 4) * plan.key_words;
    plan.queries = plan.moments + entrain_up_to(linear.d_value + 1, 2) * plan.feature_words;
    return plan;
}

/* One feature of all keys, two keys a word, every other word; its sum. */
ENTRAIN_INLINE int32_t entrain_linear_keys(struct entrain_linear linear, const int8_t *key,
                                           entrain_halves_pair *to) {
    int32_t total = 0;
    for (int32_t j = 0; j < linear.keys; j += 2) {
        const uint32_t a = (uint32_t)entrain_feature(linear.key_features, key[0]);
        const uint32_t b = (j + 1 < linear.keys) ? (uint32_t)entrain_feature(linear.key_features,
                                                                             key[linear.key.token])
                                                 : 0u;
        const uint32_t both = entrain_low_halves(a, b);
        total = entrain_smlad(both, 0x00010001u, total);
        to[j] = both;
        key += 2 * linear.key.token;
    }
    return total;
}

/* The features of all keys; the largest of their sums. */
ENTRAIN_INLINE int32_t entrain_linear_features(struct entrain_linear linear,
                                               struct entrain_linear_plan plan, int32_t head) {
    const int8_t *key = entrain_row(linear.key, head, 0);
    int32_t largest = 0;
    for (int32_t f = 0; f < linear.d_head; f++) {
        entrain_halves_pair *to = plan.keys + (f / 2) * 2 * plan.key_words + f % 2;
        plan.totals[f] = entrain_linear_keys(linear, key + f, to);
        largest = (plan.totals[f] > largest) ? plan.totals[f] : largest;
    }
    if (linear.d_head % 2 != 0) {
        entrain_halves_pair *spare = plan.keys + (linear.d_head / 2) * 2 * plan.key_words + 1;
        for (int32_t w = 0; w < plan.key_words; w++) {
            spare[2 * w] = 0;
        }
    }
    return largest;
}

/* The moments of features 2w and 2w + 1 with a channel, as a word. */
ENTRAIN_INLINE uint32_t entrain_linear_two_moments(int32_t first, int32_t second,
                                                   struct entrain_moment_shift shift) {
    return entrain_low_halves((uint32_t)entrain_moment(first, shift),
                              (uint32_t)entrain_moment(second, shift));
}

ENTRAIN_INLINE void entrain_linear_moments(struct entrain_linear linear,
                                           struct entrain_linear_plan plan, int32_t head) {
    const struct entrain_moment_shift shift =
        entrain_moment_shift(linear, entrain_linear_features(linear, plan, head));
    entrain_pair_channels(linear.value, head, linear.keys, linear.d_value, plan.key_words,
                          plan.values);
    const entrain_halves_pair *keys = plan.keys;
    for (int32_t w = 0; w < plan.feature_words; w++) {
        entrain_halves_pair *moments = plan.moments + 2 * w;
        const entrain_halves_pair *values = plan.values;
        for (int32_t c = 0; c < linear.d_value; c += 2) {
            const struct entrain_block block = entrain_products(&values, keys, plan.key_words);
            moments[0] = entrain_linear_two_moments(block.sums[0][0], block.sums[0][1], shift);
            moments[1] = entrain_linear_two_moments(block.sums[1][0], block.sums[1][1], shift);
            moments += 2 * plan.feature_words;
        }
        keys += 2 * plan.key_words;
        const int32_t total = plan.totals[2 * w] << linear.value_bits;
        const int32_t next =
            (2 * w + 1 < linear.d_head) ? plan.totals[2 * w + 1] << linear.value_bits : 0;
        const uint32_t weights = entrain_linear_two_moments(total, next, shift);
        entrain_halves_pair *last = plan.moments + (linear.d_value / 2) * 2 * plan.feature_words;
        last[2 * w + linear.d_value % 2] = weights;
        if (linear.d_value % 2 == 0) {
            last[2 * w + 1] = weights; /* read, never used */
        }
    }
}

/* The features of two queries, side by side. */
ENTRAIN_INLINE void entrain_linear_queries(struct entrain_linear linear, const int8_t *first,
                                           const int8_t *second, entrain_halves_pair *to) {
    const int16_t *features = linear.query_features;
    for (int32_t f = 0; f < linear.d_head; f += 2) {
        const bool is_last = f + 1 == linear.d_head;
        to[f] =
            entrain_low_halves((uint32_t)entrain_feature(features, first[f]),
                               is_last ? 0u : (uint32_t)entrain_feature(features, first[f + 1]));
        to[f + 1] =
            entrain_low_halves((uint32_t)entrain_feature(features, second[f]),
                               is_last ? 0u : (uint32_t)entrain_feature(features, second[f + 1]));
    }
}

ENTRAIN_INLINE void entrain_linear_read(struct entrain_linear linear,
                                        struct entrain_linear_plan plan, int8_t *first,
                                        int8_t *second) {
    const entrain_halves_pair *moments =
        plan.moments + (linear.d_value / 2) * 2 * plan.feature_words;
    const struct entrain_block weights =
        entrain_products(&moments, plan.queries, plan.feature_words);
    const int32_t f0 = entrain_linear_factor(linear, weights.sums[linear.d_value % 2][0]);
    const int32_t f1 = entrain_linear_factor(linear, weights.sums[linear.d_value % 2][1]);
    moments = plan.moments;
    for (int32_t c = 0; c < linear.d_value; c += 2) {
        const struct entrain_block block =
            entrain_products(&moments, plan.queries, plan.feature_words);
        first[c] = entrain_linear_average(linear, block.sums[0][0], f0);
        second[c] = entrain_linear_average(linear, block.sums[0][1], f1);
        if (c + 1 < linear.d_value) {
            first[c + 1] = entrain_linear_average(linear, block.sums[1][0], f0);
            second[c + 1] = entrain_linear_average(linear, block.sums[1][1], f1);
        }
    }
}

ENTRAIN_INLINE void entrain_linear_head(struct entrain_linear linear, int32_t head, void *scratch) {
    const struct entrain_linear_plan plan = entrain_linear_plan(linear, scratch);
    entrain_linear_moments(linear, plan, head);
    for (int32_t i = 0; i < linear.queries; i += 2) {
        const int32_t next = entrain_least(i + 1, linear.queries - 1);
        entrain_linear_queries(linear, entrain_row(linear.query, head, i),
                               entrain_row(linear.query, head, next), plan.queries);
        entrain_linear_read(linear, plan, entrain_result_row(linear.result, head, i),
                            entrain_result_row(linear.result, head, next));
    }
}

#endif
