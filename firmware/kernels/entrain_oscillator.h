/* Oscillator attention: the C of deploy/lowering/operators/oscillator_attention.py.
 *
 * Couplings of a few queries at a time are summed up into their fields as they are made; the states
 * that the fields settle at read out the values, by sums made once for a head where the exponent is
 * 1. With separable couplings no pair of tokens is ever looked at. */
#ifndef ENTRAIN_OSCILLATOR_H
#define ENTRAIN_OSCILLATOR_H

#include "entrain_attention.h"
#include "entrain_division.h"
#include "entrain_settling.h"

enum entrain_coupling {
    ENTRAIN_RECTIFIED,       /* max(s, 0) */
    ENTRAIN_TABULATED,       /* table[s] */
    ENTRAIN_RECTIFIED_TABLE, /* max(s, 0) + table[s] */
    ENTRAIN_SEPARABLE        /* max(q, 0).max(k, 0) */
};

#define ENTRAIN_TABLE_MIDDLE 256 /* of 512 entries: the score 0 */

/* Arrays of components are padded to an even number of them, with zeros. Anchors lie as
 * [component / 2][token / 2][component % 2][token % 2], tokens padded to a multiple of 8.
 *
 * coupling_shift, weight_bits, multiplier, table_lift, lift: see deploy/arithmetic/coupling.py.
 * moment_shift, value_factor, token_weight, least (exponent 1), one and read_out_bits (any other),
 * quotient, drop, shift: see deploy/arithmetic/oscillator.py. */
struct entrain_oscillator {
    int32_t heads;
    int32_t queries;
    int32_t keys;
    int32_t d_head;
    int32_t d_value;
    int32_t d_osc;
    struct entrain_rows query;
    struct entrain_rows key;
    struct entrain_rows value;
    struct entrain_result result;
    const int16_t *anchors;
    const int16_t *anchor_sums; /* those of the components; for exponent 1 */
    const int32_t *bias;        /* the constant part of each field */
    bool shared;                /* all heads have the same anchors */
    enum entrain_coupling coupling;
    const int16_t *table;
    int32_t multiplier;
    int32_t table_lift;
    int32_t coupling_shift;
    int32_t weight_bits;
    int32_t lift;
    int32_t exponent;
    int32_t moment_shift;
    int32_t value_factor;
    int32_t token_weight;
    int32_t least;
    int32_t one;
    int32_t read_out_bits;
    uint32_t quotient;
    int32_t drop;
    int32_t shift;
};

ENTRAIN_INLINE int32_t entrain_component_pairs(struct entrain_oscillator oscillator) {
    return (oscillator.d_osc + 1) / 2;
}

/* Halves of anchors in one pair of components. */
ENTRAIN_INLINE int32_t entrain_anchor_pair(struct entrain_oscillator oscillator) {
    return 2 * entrain_up_to(oscillator.keys, 8);
}

/* The constants of a head. */
ENTRAIN_INLINE const int16_t *entrain_head_anchors(struct entrain_oscillator oscillator,
                                                   int32_t head) {
    const int32_t size = entrain_component_pairs(oscillator) * entrain_anchor_pair(oscillator);
    return oscillator.anchors + (oscillator.shared ? 0 : head * size);
}

ENTRAIN_INLINE int32_t entrain_head_components(struct entrain_oscillator oscillator, int32_t head) {
    return oscillator.shared ? 0 : head * 2 * entrain_component_pairs(oscillator);
}

/* x / 2^shift to nearest, halves upwards. */
ENTRAIN_INLINE int32_t entrain_rounded(int32_t x, int32_t shift) {
    return (x + (int32_t)((1u << shift) >> 1)) >> shift;
}

/* How far a drive is shifted right to have `bits` bits, given all magnitudes of it or-ed. */
ENTRAIN_INLINE int32_t entrain_drive_shift(uint32_t magnitudes, int32_t bits) {
    const int32_t surplus = 32 - __builtin_clz(magnitudes | 1u) - bits;
    return (surplus > 0) ? surplus : 0;
}

ENTRAIN_INLINE uint32_t entrain_magnitude(int32_t x) {
    return (uint32_t)((x < 0) ? -x : x);
}

/* A drive, or a moment, in 15 bits and a sign. */
ENTRAIN_INLINE int16_t entrain_half(int32_t x, int32_t shift, int32_t bits) {
    return (int16_t)entrain_least(entrain_rounded(x, shift), (1 << bits) - 1);
}

/* The weight of a score by the table; the rectified part is added elsewhere. */
ENTRAIN_INLINE int32_t entrain_table_weight(struct entrain_oscillator oscillator, int32_t score) {
    const int32_t lifted = score * (1 << oscillator.table_lift);
    const int64_t product = (int64_t)lifted * oscillator.multiplier;
    const int32_t place = (int32_t)((product + 0x80000000) >> 32);
    const int32_t kept = entrain_clip(place, -ENTRAIN_TABLE_MIDDLE, ENTRAIN_TABLE_MIDDLE - 1);
    return oscillator.table[kept + ENTRAIN_TABLE_MIDDLE];
}

ENTRAIN_INLINE int32_t entrain_coupling_weight(struct entrain_oscillator oscillator,
                                               int32_t score) {
    int32_t weight = 0;
    if (oscillator.coupling != ENTRAIN_TABULATED) {
        const int32_t rounded = entrain_rounded(score, oscillator.coupling_shift);
        weight = (rounded > 0) ? rounded : 0;
    }
    if (oscillator.coupling != ENTRAIN_RECTIFIED) {
        weight += entrain_table_weight(oscillator, score);
    }
    return entrain_least(weight, (1 << oscillator.weight_bits) - 1);
}

/* The row's factor, given its weight. */
ENTRAIN_INLINE int32_t entrain_read_out_factor(struct entrain_oscillator oscillator,
                                               int32_t weight) {
    const int32_t divisor = (weight > oscillator.least) ? weight : oscillator.least;
    return entrain_row_factor(divisor, oscillator.quotient, oscillator.drop);
}

ENTRAIN_INLINE int8_t entrain_read_out(struct entrain_oscillator oscillator, int32_t numerator,
                                       int32_t factor) {
    return (int8_t)entrain_divide_to_byte(numerator, factor, oscillator.shift,
                                          oscillator.result.zero_point,
                                          oscillator.result.is_unsigned);
}

/* What scales the closenesses of a row so that the largest is just below 1. */
struct entrain_closeness_scale {
    int32_t left;
    uint32_t inverse;
};

ENTRAIN_INLINE struct entrain_closeness_scale
entrain_closeness_scale(struct entrain_oscillator oscillator, int32_t largest) {
    const int32_t kept = (largest > oscillator.one / 2) ? largest : oscillator.one / 2;
    const uint32_t bound = (uint32_t)kept + ((uint32_t)kept >> 14) + 1u;
    const int32_t left = __builtin_clz(bound);
    const struct entrain_closeness_scale scale = {left, (UINT32_MAX / ((bound << left) >> 16))
                                                            << 15};
    return scale;
}

ENTRAIN_INLINE uint32_t entrain_high_unsigned(uint32_t a, uint32_t b) {
    return (uint32_t)(((uint64_t)a * b) >> 32);
}

/* The highest bit of an exponent below its leading one. */
ENTRAIN_INLINE uint32_t entrain_first_square(int32_t exponent) {
    return 0x40000000u >> __builtin_clz((uint32_t)exponent);
}

/* (closeness / largest)^exponent in `read_out_bits` bits. */
ENTRAIN_INLINE int32_t entrain_closeness_weight(struct entrain_oscillator oscillator,
                                                int32_t closeness,
                                                struct entrain_closeness_scale scale) {
    const uint32_t base = entrain_high_unsigned((uint32_t)closeness << scale.left, scale.inverse)
                          << 1;
    uint32_t power = base;
    for (uint32_t bit = entrain_first_square(oscillator.exponent); bit != 0; bit >>= 1) {
        power = entrain_high_unsigned(power, power);
        if (((uint32_t)oscillator.exponent & bit) != 0) {
            power = entrain_high_unsigned(power, base);
        }
    }
    return (int32_t)(power >> (32 - oscillator.read_out_bits));
}

#if defined(ENTRAIN_MVE)
#include "entrain_oscillator_mve.h"
#elif defined(ENTRAIN_DSP)
#include "entrain_oscillator_dsp.h"
#else
#include "entrain_oscillator_scalar.h"
#endif

ENTRAIN_INLINE void entrain_oscillator_attention(struct entrain_oscillator oscillator,
                                                 void *scratch) {
    for (int32_t head = 0; head < oscillator.heads; head++) {
        entrain_oscillator_head(oscillator, head, scratch);
    }
}

#endif
