/* Quotients in integers: the C of deploy/arithmetic/division.py.
 *
 * One 32-bit unsigned division a row, no 64-bit division anywhere. A row's factor f stands for
 * c / d with a constant c; each quotient is then a multiplication and a shift. */
#ifndef ENTRAIN_DIVISION_H
#define ENTRAIN_DIVISION_H

#include <stdbool.h>

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

/* (numerator * f + 2^(shift-1)) >> shift, for a shift from 33 to 54: the low word of the product
 * cannot matter. */
ENTRAIN_INLINE int32_t entrain_divide(int32_t numerator, int32_t f, int32_t shift) {
    return (entrain_high_product(numerator, f) + ((int32_t)1 << (shift - 33))) >> (shift - 32);
}

/* An integer as 8 bits, after an arithmetic shift of 0 to 31. */
#if defined(ENTRAIN_SAT)
ENTRAIN_INLINE int32_t entrain_shift_to_signed_byte(int32_t x, int32_t shift) {
    int32_t byte;
    __asm("ssat %0, #8, %1, asr %2" : "=r"(byte) : "r"(x), "i"(shift));
    return byte;
}

ENTRAIN_INLINE int32_t entrain_shift_to_unsigned_byte(int32_t x, int32_t shift) {
    int32_t byte;
    __asm("usat %0, #8, %1, asr %2" : "=r"(byte) : "r"(x), "i"(shift));
    return byte;
}
#else
ENTRAIN_INLINE int32_t entrain_shift_to_signed_byte(int32_t x, int32_t shift) {
    return entrain_clip(x >> shift, INT8_MIN, INT8_MAX);
}

ENTRAIN_INLINE int32_t entrain_shift_to_unsigned_byte(int32_t x, int32_t shift) {
    return entrain_clip(x >> shift, 0, UINT8_MAX);
}
#endif

/* The high word of a product, plus a number. */
#if defined(ENTRAIN_SIMD32)
ENTRAIN_INLINE int32_t entrain_high_product_plus(int32_t a, int32_t b, int32_t number) {
    int32_t sum;
    __asm("smmla %0, %1, %2, %3" : "=r"(sum) : "r"(a), "r"(b), "r"(number));
    return sum;
}
#else
ENTRAIN_INLINE int32_t entrain_high_product_plus(int32_t a, int32_t b, int32_t number) {
    return entrain_high_product(a, b) + number;
}
#endif

/* A quotient as a byte: clip(zero_point + quotient). With a shift of 54 or less, half a step and
 * the zero point fit the high word beside any product of 62 bits, so they are added before the
 * shift. */
ENTRAIN_INLINE int32_t entrain_divide_to_byte(int32_t numerator, int32_t f, int32_t shift,
                                              int32_t zero_point, bool is_unsigned) {
    const int32_t offset = zero_point * ((int32_t)1 << (shift - 32)) + ((int32_t)1 << (shift - 33));
    const int32_t high = entrain_high_product_plus(numerator, f, offset);
    return is_unsigned ? entrain_shift_to_unsigned_byte(high, shift - 32)
                       : entrain_shift_to_signed_byte(high, shift - 32);
}

#endif
