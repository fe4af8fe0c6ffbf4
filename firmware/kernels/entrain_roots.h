/* Inverse square roots in integers: the C of deploy/arithmetic/roots.py. */
#ifndef ENTRAIN_ROOTS_H
#define ENTRAIN_ROOTS_H

#include "entrain_isa.h"

/* 1/sqrt(s) = mantissa * 2^-exponent, the mantissa from 2^15 to 2^16. */
typedef struct {
    int32_t mantissa;
    int32_t exponent;
} entrain_root;

ENTRAIN_INLINE uint32_t entrain_high_word(uint32_t a, uint32_t b) {
    return (uint32_t)(((uint64_t)a * b) >> 32);
}

/* s > 0. Three steps of Newton's iteration on 30 bits of fraction. */
ENTRAIN_INLINE entrain_root entrain_reciprocal_root(int64_t s) {
    const uint64_t square = (uint64_t)s;
    const int32_t even = __builtin_clzll(square) & ~1;
    const uint32_t m = (uint32_t)((square << even) >> 32);
    uint32_t y = 2289969188u - entrain_high_word(1308569161u, m);
    for (int32_t step = 0; step < 3; ++step) {
        const uint32_t nearly_one = entrain_high_word(entrain_high_word(y, m), y);
        y = entrain_high_word(y, (3u << 28) - nearly_one) << 3;
    }
    const entrain_root root = {(int32_t)((y + (1u << 14)) >> 15), 47 - (even / 2)};
    return root;
}

#endif
