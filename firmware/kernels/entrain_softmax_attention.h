/* Softmax attention: the C of deploy/lowering/operators/softmax_attention.py.
 *
 * A block of queries at a time: their scores against all keys, the exponentials of these by a
 * table, and the averages of the values. No more scores than a block's are ever stored. */
#ifndef ENTRAIN_SOFTMAX_ATTENTION_H
#define ENTRAIN_SOFTMAX_ATTENTION_H

#include "entrain_attention.h"
#include "entrain_division.h"

/* Scores become steps of the table, 2^16 of them with this added: 16 bits without a sign. */
#define ENTRAIN_SCORE_BIAS 0x80000000u

/* Exponentials as in deploy/arithmetic/exponential.py: `table` has `entries` of them, the last one
 * a row's largest score's, the first one 0. `quotient`, `drop` and `shift` are a Quotient's. */
struct entrain_softmax {
    int32_t heads;
    int32_t queries;
    int32_t keys;
    int32_t d_head;
    int32_t d_value;
    struct entrain_rows query;
    struct entrain_rows key;
    struct entrain_rows value;
    struct entrain_result result;
    const int16_t *table;
    int32_t entries;
    uint32_t multiplier;
    uint32_t quotient;
    int32_t drop;
    int32_t shift;
};

/* The steps of a score, as a number without a sign. */
ENTRAIN_INLINE uint32_t entrain_score_steps(int32_t score, uint32_t multiplier) {
    return ((uint32_t)score * multiplier + ENTRAIN_SCORE_BIAS) >> 16;
}

/* A sum of weighed values, over the sum of weights that `factor` stands for. */
ENTRAIN_INLINE int8_t entrain_softmax_average(struct entrain_softmax softmax, int32_t sum,
                                              int32_t factor) {
    return (int8_t)entrain_divide_to_byte(sum, factor, softmax.shift, softmax.result.zero_point,
                                          softmax.result.is_unsigned);
}

#if defined(ENTRAIN_MVE)
#include "entrain_softmax_attention_mve.h"
#elif defined(ENTRAIN_DSP)
#include "entrain_softmax_attention_dsp.h"
#else
#include "entrain_softmax_attention_scalar.h"
#endif

ENTRAIN_INLINE void entrain_softmax_attention(struct entrain_softmax softmax, void *scratch) {
    for (int32_t head = 0; head < softmax.heads; head++) {
        entrain_softmax_head(softmax, head, scratch);
    }
}

#endif
