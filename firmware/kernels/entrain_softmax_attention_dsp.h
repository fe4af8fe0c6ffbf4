/* One head of softmax attention with SMLAD, two queries at a time.
 *
 * Scores, weights and sums of two queries lie side by side, two keys a word. */
#ifndef ENTRAIN_SOFTMAX_ATTENTION_DSP_H
#define ENTRAIN_SOFTMAX_ATTENTION_DSP_H

#include "entrain_attention_dsp.h"

/* Words of a row, and what a head keeps: keys two by two, channels of values two by two, and of two
 * queries the channels and the scores or weights. */
struct entrain_softmax_plan {
    int32_t channel_words;
    int32_t key_words;
    entrain_halves_pair *keys;
    entrain_halves_pair *values;
    entrain_halves_pair *queries;
    entrain_halves_pair *weights;
};

ENTRAIN_INLINE struct entrain_softmax_plan entrain_softmax_plan(struct entrain_softmax softmax,
                                                                void *scratch) {
    struct entrain_softmax_plan plan;
    plan.channel_words = entrain_up_to(softmax.d_head, 4) / 2;
    plan.key_words = entrain_up_to(softmax.keys, 2) / 2;
    plan.keys = (entrain_halves_pair *)scratch;
    plan.values = plan.keys + plan.key_words * 2 * plan.channel_words;
    plan.queries = plan.values + entrain_up_to(softmax.d_value, 4) * plan.key_words;
    plan.weights = plan.queries + 2 * plan.channel_words;
    return plan;
}

ENTRAIN_INLINE uint32_t entrain_largest_half(uint32_t halves) {
    const uint32_t low = halves & 0xFFFFu;
    const uint32_t high = halves >> 16;
    return (low > high) ? low : high;
}

/* Steps of two scores, in halves. */
ENTRAIN_INLINE uint32_t entrain_two_steps(int32_t score, int32_t next, uint32_t multiplier) {
    return entrain_high_halves(
        entrain_multiply_add((uint32_t)score, multiplier, ENTRAIN_SCORE_BIAS),
        entrain_multiply_add((uint32_t)next, multiplier, ENTRAIN_SCORE_BIAS));
}

ENTRAIN_INLINE void entrain_softmax_scores(struct entrain_softmax softmax,
                                           struct entrain_softmax_plan plan) {
    const entrain_halves_pair *keys = plan.keys;
    entrain_halves_pair *steps = plan.weights;
    do {
        const struct entrain_block block =
            entrain_products(&keys, plan.queries, plan.channel_words);
        steps[0] = entrain_two_steps(block.sums[0][0], block.sums[1][0], softmax.multiplier);
        steps[1] = entrain_two_steps(block.sums[0][1], block.sums[1][1], softmax.multiplier);
        steps += 2;
    } while (steps < plan.weights + 2 * plan.key_words);
    if (softmax.keys % 2 != 0) {
        steps[-2] &= 0xFFFFu; /* a key that is not there is below all */
        steps[-1] &= 0xFFFFu;
    }
}

#if defined(ENTRAIN_SIMD32)

/* The larger ones of `highest` and the steps of two more keys, of both queries; moves on. */
ENTRAIN_INLINE void entrain_raise(const entrain_halves_pair **steps, uint32_t highest[2]) {
    uint32_t a, b, spare;
    __asm("ldrd %[a], %[b], [%[steps]], #8\n\t"
          "usub16 %[spare], %[a], %[h0]\n\t"
          "sel %[h0], %[a], %[h0]\n\t"
          "usub16 %[spare], %[b], %[h1]\n\t"
          "sel %[h1], %[b], %[h1]"
          : [steps] "+r"(*steps), [h0] "+r"(highest[0]), [h1] "+r"(highest[1]), [a] "=&r"(a),
            [b] "=&r"(b), [spare] "=&r"(spare)
          :
          : "cc", "memory");
}

/* The steps of two keys, of both queries, become weights, which are added to `sums`; moves on.
 * `lowest`: the steps with which the table begins, in both halves. `ones`: 1 in both halves. */
ENTRAIN_INLINE void entrain_weigh(entrain_halves_pair **steps, const int16_t *table, uint32_t ones,
                                  const uint32_t lowest[2], int32_t sums[2]) {
    uint32_t a, b, c, d;
    __asm("ldrd %[a], %[b], [%[steps]]\n\t"
          "uqsub16 %[a], %[a], %[l0]\n\t"
          "uqsub16 %[b], %[b], %[l1]\n\t"
          "uxth %[c], %[a]\n\t"
          "lsr %[a], %[a], #16\n\t"
          "ldrh %[c], [%[table], %[c], lsl #1]\n\t"
          "ldrh %[a], [%[table], %[a], lsl #1]\n\t"
          "uxth %[d], %[b]\n\t"
          "lsr %[b], %[b], #16\n\t"
          "ldrh %[d], [%[table], %[d], lsl #1]\n\t"
          "ldrh %[b], [%[table], %[b], lsl #1]\n\t"
          "pkhbt %[a], %[c], %[a], lsl #16\n\t"
          "pkhbt %[b], %[d], %[b], lsl #16\n\t"
          "smlad %[s0], %[a], %[ones], %[s0]\n\t"
          "smlad %[s1], %[b], %[ones], %[s1]\n\t"
          "strd %[a], %[b], [%[steps]], #8"
          : [steps] "+r"(*steps), [s0] "+r"(sums[0]), [s1] "+r"(sums[1]), [a] "=&r"(a),
            [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d)
          : [l0] "r"(lowest[0]), [l1] "r"(lowest[1]), [table] "r"(table), [ones] "r"(ones)
          : "memory");
}

#else

ENTRAIN_INLINE void entrain_raise(const entrain_halves_pair **steps, uint32_t highest[2]) {
    highest[0] = entrain_largest16((*steps)[0], highest[0]);
    highest[1] = entrain_largest16((*steps)[1], highest[1]);
    *steps += 2;
}

ENTRAIN_INLINE void entrain_weigh(entrain_halves_pair **steps, const int16_t *table, uint32_t ones,
                                  const uint32_t lowest[2], int32_t sums[2]) {
    for (int32_t i = 0; i < 2; i++) {
        const uint32_t places = entrain_uqsub16((*steps)[i], lowest[i]);
        (*steps)[i] =
            entrain_low_halves((uint32_t)table[places & 0xFFFFu], (uint32_t)table[places >> 16]);
        sums[i] = entrain_smlad((*steps)[i], ones, sums[i]);
    }
    *steps += 2;
}

#endif

/* The steps with which the table begins, of each of two queries, in both halves. */
ENTRAIN_INLINE void entrain_softmax_lowest(struct entrain_softmax softmax,
                                           struct entrain_softmax_plan plan, uint32_t lowest[2]) {
    uint32_t highest[2] = {0, 0};
    const entrain_halves_pair *steps = plan.weights;
#pragma GCC unroll 4
    for (int32_t w = 0; w < plan.key_words; w++) {
        entrain_raise(&steps, highest);
    }
    for (int32_t i = 0; i < 2; i++) {
        const uint32_t first = entrain_largest_half(highest[i]) - ((uint32_t)softmax.entries - 1u);
        lowest[i] = first * 0x00010001u;
    }
}

/* Scores become weights, in place; the factors of both queries. */
ENTRAIN_INLINE void entrain_softmax_weights(struct entrain_softmax softmax,
                                            struct entrain_softmax_plan plan, int32_t factors[2]) {
    uint32_t lowest[2];
    entrain_softmax_lowest(softmax, plan, lowest);
    int32_t sums[2] = {0, 0};
    entrain_halves_pair *steps = plan.weights;
#pragma GCC unroll 4
    for (int32_t w = 0; w < plan.key_words; w++) {
        entrain_weigh(&steps, softmax.table, 0x00010001u, lowest, sums);
    }
    factors[0] = entrain_row_factor(sums[0], softmax.quotient, softmax.drop);
    factors[1] = entrain_row_factor(sums[1], softmax.quotient, softmax.drop);
}

ENTRAIN_INLINE void entrain_softmax_averages(struct entrain_softmax softmax,
                                             struct entrain_softmax_plan plan,
                                             const int32_t factors[2], int8_t *first,
                                             int8_t *second) {
    const entrain_halves_pair *values = plan.values;
    for (int32_t c = 0; c < softmax.d_value; c += 2) {
        const struct entrain_block block = entrain_products(&values, plan.weights, plan.key_words);
        first[c] = entrain_softmax_average(softmax, block.sums[0][0], factors[0]);
        second[c] = entrain_softmax_average(softmax, block.sums[0][1], factors[1]);
        if (c + 1 < softmax.d_value) {
            first[c + 1] = entrain_softmax_average(softmax, block.sums[1][0], factors[0]);
            second[c + 1] = entrain_softmax_average(softmax, block.sums[1][1], factors[1]);
        }
    }
}

ENTRAIN_INLINE void entrain_softmax_head(struct entrain_softmax softmax, int32_t head,
                                         void *scratch) {
    const struct entrain_softmax_plan plan = entrain_softmax_plan(softmax, scratch);
    for (int32_t w = 0; w < plan.key_words; w++) {
        const int32_t next = entrain_least(2 * w + 1, softmax.keys - 1);
        entrain_pair_rows(softmax.key, entrain_row(softmax.key, head, 2 * w),
                          entrain_row(softmax.key, head, next), softmax.d_head,
                          plan.keys + w * 2 * plan.channel_words);
    }
    entrain_pair_channels(softmax.value, head, softmax.keys, softmax.d_value, plan.key_words,
                          plan.values);
    for (int32_t i = 0; i < softmax.queries; i += 2) {
        const int32_t next = entrain_least(i + 1, softmax.queries - 1);
        entrain_pair_rows(softmax.query, entrain_row(softmax.query, head, i),
                          entrain_row(softmax.query, head, next), softmax.d_head, plan.queries);
        int32_t factors[2];
        entrain_softmax_scores(softmax, plan);
        entrain_softmax_weights(softmax, plan, factors);
        entrain_softmax_averages(softmax, plan, factors,
                                 entrain_result_row(softmax.result, head, i),
                                 entrain_result_row(softmax.result, head, next));
    }
}

#endif
