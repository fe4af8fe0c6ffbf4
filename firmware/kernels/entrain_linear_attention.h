/* Linear attention: the C of deploy/lowering/operators/linear_attention.py.
 *
 * Sums of the keys' features with the values, once a head; then what each query's features read of
 * them. Channel d_value of the sums is that of ones, times 2^value_bits: the weights' own. */
#ifndef ENTRAIN_LINEAR_ATTENTION_H
#define ENTRAIN_LINEAR_ATTENTION_H

#include "entrain_attention.h"
#include "entrain_division.h"

#define ENTRAIN_FEATURE_BITS 15
#define ENTRAIN_NO_WEIGHT    (1 << 14)

/* Features by byte without its sign, 256 each. `quotient`, `drop` and `shift` are a Quotient's. */
struct entrain_linear {
    int32_t heads;
    int32_t queries;
    int32_t keys;
    int32_t d_head;
    int32_t d_value;
    struct entrain_rows query;
    struct entrain_rows key;
    struct entrain_rows value;
    struct entrain_result result;
    const int16_t *query_features;
    const int16_t *key_features;
    int32_t value_bits;
    uint32_t quotient;
    int32_t drop;
    int32_t shift;
};

/* How sums of 32 bits become 16: first to the left, then to the right. */
struct entrain_moment_shift {
    int32_t left;
    int32_t right;
};

/* The shift for a largest sum of features. */
ENTRAIN_INLINE struct entrain_moment_shift entrain_moment_shift(struct entrain_linear linear,
                                                                int32_t largest) {
    const uint32_t total = (uint32_t)((largest > 0) ? largest : 1) << linear.value_bits;
    const int32_t down = 32 - __builtin_clz(total) - ENTRAIN_FEATURE_BITS;
    return (struct entrain_moment_shift){(down < 0) ? -down : 0, (down > 0) ? down : 0};
}

ENTRAIN_INLINE int32_t entrain_moment(int32_t sum, struct entrain_moment_shift shift) {
    return (int32_t)((uint32_t)sum << shift.left) >> shift.right;
}

ENTRAIN_INLINE int32_t entrain_feature(const int16_t *features, int8_t stored) {
    return features[(uint8_t)stored];
}

/* The factor for a sum of weights. */
ENTRAIN_INLINE int32_t entrain_linear_factor(struct entrain_linear linear, int32_t weights) {
    const int32_t counted = (weights > ENTRAIN_NO_WEIGHT) ? weights : ENTRAIN_NO_WEIGHT;
    return entrain_row_factor(counted, linear.quotient, linear.drop);
}

ENTRAIN_INLINE int8_t entrain_linear_average(struct entrain_linear linear, int32_t sum,
                                             int32_t factor) {
    return (int8_t)entrain_divide_to_byte(sum, factor, linear.shift, linear.result.zero_point,
                                          linear.result.is_unsigned);
}

#if defined(ENTRAIN_MVE)
#include "entrain_linear_attention_mve.h"
#elif defined(ENTRAIN_DSP)
#include "entrain_linear_attention_dsp.h"
#else
#include "entrain_linear_attention_scalar.h"
#endif

ENTRAIN_INLINE void entrain_linear_attention(struct entrain_linear linear, void *scratch) {
    for (int32_t head = 0; head < linear.heads; head++) {
        entrain_linear_head(linear, head, scratch);
    }
}

#endif
