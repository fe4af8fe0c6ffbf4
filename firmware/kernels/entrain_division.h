/* Quotients in integers: the C of deploy/arithmetic/division.py.
 *
 * One 32-bit unsigned division a row, no 64-bit division anywhere. A row's factor f stands for
 * c / d with a constant c; each quotient is then a multiplication and a shift. */
#ifndef ENTRAIN_DIVISION_H
#define ENTRAIN_DIVISION_H

#include "entrain_arithmetic.h"
#include "entrain_isa.h"

/* f = (r * multiplier) >> (drop - n), where 1/d is about r * 2^(n - 48). 0 < d < 2^31; below 2^31.
 * multiplier and drop are those of a Quotient. */
ENTRAIN_INLINE int32_t entrain_row_factor(int32_t d, uint32_t multiplier, int32_t drop) {
    const int32_t zeros = __builtin_clz((uint32_t)d);
    const uint32_t top = ((uint32_t)d << zeros) >> 16;
    const uint32_t r = UINT32_MAX / top;
    return (int32_t)((r * multiplier) >> (drop - zeros));
}

/* The high word of a product. */
ENTRAIN_INLINE int32_t entrain_high_product(int32_t a, int32_t b) {
    return (int32_t)(((int64_t)a * b) >> 32);
}

/* (numerator * f + 2^(shift-1)) >> shift, for a shift from 33 to 62: the low word of the product
 * cannot matter. */
ENTRAIN_INLINE int32_t entrain_divide(int32_t numerator, int32_t f, int32_t shift) {
    return (entrain_high_product(numerator, f) + ((int32_t)1 << (shift - 33))) >> (shift - 32);
}

/* The same, then the zero point and the clip to the type of a value. */
ENTRAIN_INLINE int32_t entrain_divide_to(int32_t numerator, int32_t f, int32_t shift,
                                         int32_t zero_point, int32_t low, int32_t high) {
    return entrain_clip(entrain_divide(numerator, f, shift) + zero_point, low, high);
}

#endif
