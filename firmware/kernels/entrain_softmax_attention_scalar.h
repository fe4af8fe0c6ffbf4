/* One head of softmax attention in plain C, two queries at a time.
 *
 * Zero points of keys and values come off the sums, not off each summand. Sums are taken modulo
 * 2^32, in which their ranges fit at the end. */
#ifndef ENTRAIN_SOFTMAX_ATTENTION_SCALAR_H
#define ENTRAIN_SOFTMAX_ATTENTION_SCALAR_H

/* Two queries without their zero point, [channel][2], and their scores or weights, [key][2].
 * Words and halves, so that the compiler knows that they do not overlap. */
struct entrain_softmax_pair {
    uint32_t *queries;
    uint16_t *weights;
    uint32_t query_sums[2];
    uint32_t highest[2];
    uint32_t weight_sums[2];
};

ENTRAIN_INLINE void entrain_softmax_read(struct entrain_softmax softmax, const int8_t *first,
                                         const int8_t *second, struct entrain_softmax_pair *pair) {
    pair->query_sums[0] = 0;
    pair->query_sums[1] = 0;
    for (int32_t c = 0; c < softmax.d_head; c++) {
        const int32_t a = entrain_channel(softmax.query, first, c) - softmax.query.zero_point;
        const int32_t b = entrain_channel(softmax.query, second, c) - softmax.query.zero_point;
        pair->queries[2 * c] = (uint32_t)a;
        pair->queries[2 * c + 1] = (uint32_t)b;
        pair->query_sums[0] += (uint32_t)a;
        pair->query_sums[1] += (uint32_t)b;
    }
}

ENTRAIN_INLINE void entrain_softmax_scores(struct entrain_softmax softmax, int32_t head,
                                           struct entrain_softmax_pair *pair) {
    const int8_t *key = entrain_row(softmax.key, head, 0);
    const uint32_t zero = (uint32_t)-softmax.key.zero_point;
    pair->highest[0] = 0;
    pair->highest[1] = 0;
    for (int32_t j = 0; j < softmax.keys; j++) {
        uint32_t a = pair->query_sums[0] * zero;
        uint32_t b = pair->query_sums[1] * zero;
        for (int32_t c = 0; c < softmax.d_head; c++) {
            const uint32_t k = (uint32_t)entrain_channel(softmax.key, key, c);
            a += pair->queries[2 * c] * k;
            b += pair->queries[2 * c + 1] * k;
        }
        a = entrain_score_steps((int32_t)a, softmax.multiplier);
        b = entrain_score_steps((int32_t)b, softmax.multiplier);
        pair->highest[0] = (a > pair->highest[0]) ? a : pair->highest[0];
        pair->highest[1] = (b > pair->highest[1]) ? b : pair->highest[1];
        pair->weights[2 * j] = (uint16_t)a;
        pair->weights[2 * j + 1] = (uint16_t)b;
        key += softmax.key.token;
    }
}

/* Scores become weights, in place. */
ENTRAIN_INLINE void entrain_softmax_weights(struct entrain_softmax softmax,
                                            struct entrain_softmax_pair *pair) {
    for (int32_t i = 0; i < 2; i++) {
        const int32_t lowest = (int32_t)pair->highest[i] - (softmax.entries - 1);
        uint32_t sum = 0;
        for (int32_t j = 0; j < softmax.keys; j++) {
            const int32_t place = (int32_t)pair->weights[2 * j + i] - lowest;
            const uint16_t weight = (uint16_t)softmax.table[(place > 0) ? place : 0];
            pair->weights[2 * j + i] = weight;
            sum += weight;
        }
        pair->weight_sums[i] = sum;
    }
}

/* Sums of two channels' weighed values, the zero point taken off: [channel][query]. */
ENTRAIN_INLINE void entrain_softmax_sums(struct entrain_softmax softmax, int32_t head, int32_t c,
                                         int32_t next, const struct entrain_softmax_pair *pair,
                                         uint32_t sums[4]) {
    const int8_t *value = entrain_row(softmax.value, head, 0);
    const uint32_t zero = (uint32_t)-softmax.value.zero_point;
    uint32_t a0 = pair->weight_sums[0] * zero;
    uint32_t a1 = pair->weight_sums[1] * zero;
    uint32_t b0 = a0;
    uint32_t b1 = a1;
    for (int32_t j = 0; j < softmax.keys; j++) {
        const uint32_t a = (uint32_t)entrain_channel(softmax.value, value, c);
        const uint32_t b = (uint32_t)entrain_channel(softmax.value, value, next);
        a0 += pair->weights[2 * j] * a;
        a1 += pair->weights[2 * j + 1] * a;
        b0 += pair->weights[2 * j] * b;
        b1 += pair->weights[2 * j + 1] * b;
        value += softmax.value.token;
    }
    sums[0] = a0;
    sums[1] = a1;
    sums[2] = b0;
    sums[3] = b1;
}

/* The averages of both queries; with an odd number of them the last one is its own neighbour, and
 * so is the last one of an odd number of channels. */
ENTRAIN_INLINE void entrain_softmax_averages(struct entrain_softmax softmax, int32_t head,
                                             const struct entrain_softmax_pair *pair, int8_t *first,
                                             int8_t *second) {
    const int32_t f0 =
        entrain_row_factor((int32_t)pair->weight_sums[0], softmax.quotient, softmax.drop);
    const int32_t f1 =
        entrain_row_factor((int32_t)pair->weight_sums[1], softmax.quotient, softmax.drop);
    for (int32_t c = 0; c < softmax.d_value; c += 2) {
        const int32_t next = entrain_least(c + 1, softmax.d_value - 1);
        uint32_t sums[4];
        entrain_softmax_sums(softmax, head, c, next, pair, sums);
        first[c] = entrain_softmax_average(softmax, (int32_t)sums[0], f0);
        second[c] = entrain_softmax_average(softmax, (int32_t)sums[1], f1);
        first[next] = entrain_softmax_average(softmax, (int32_t)sums[2], f0);
        second[next] = entrain_softmax_average(softmax, (int32_t)sums[3], f1);
    }
}

ENTRAIN_INLINE void entrain_softmax_head(struct entrain_softmax softmax, int32_t head,
                                         void *scratch) {
    struct entrain_softmax_pair pair = {.queries = (uint32_t *)scratch};
    pair.weights = (uint16_t *)(pair.queries + 2 * softmax.d_head);
    for (int32_t i = 0; i < softmax.queries; i += 2) {
        const int32_t next = entrain_least(i + 1, softmax.queries - 1);
        entrain_softmax_read(softmax, entrain_row(softmax.query, head, i),
                             entrain_row(softmax.query, head, next), &pair);
        entrain_softmax_scores(softmax, head, &pair);
        entrain_softmax_weights(softmax, &pair);
        entrain_softmax_averages(softmax, head, &pair, entrain_result_row(softmax.result, head, i),
                                 entrain_result_row(softmax.result, head, next));
    }
}

#endif
