/* From a sum to 8 bits by one multiplication and one shift, as deploy/arithmetic defines it. All
 * numbers are literal constants where a kernel is called, so the compiler specialises it. */
#ifndef ENTRAIN_RESCALE_H
#define ENTRAIN_RESCALE_H

#include <stdbool.h>

#include "entrain_arithmetic.h"
#include "entrain_isa.h"

/* clip(zero_point + round(sum * multiplier / 2^shift)), 33 <= shift <= 62: deploy/arithmetic. */
struct entrain_rescale {
    int32_t shift;
    int32_t zero_point;
    int32_t low;
    int32_t high;
    bool is_unsigned;      /* the result */
    bool for_each_channel; /* a multiplier for each channel, or one for all */
};

/* Largest shift for which the zero point joins the rounding constant: the high word of a product
 * is below 2^29, a zero point at most 2^8. */
#define ENTRAIN_ZERO_POINT_JOINS 54

/* Unsigned bytes less this are signed ones. */
#define ENTRAIN_UNSIGNED_OFFSET 128

/* A stored byte as a number. */
ENTRAIN_INLINE int32_t entrain_byte(const uint8_t *byte, bool is_unsigned) {
    return is_unsigned ? *byte : *(const int8_t *)byte;
}

/* summand + the high word of a * b. */
ENTRAIN_INLINE int32_t entrain_add_high_product(int32_t summand, int32_t a, int32_t b) {
#if defined(ENTRAIN_SIMD32)
    int32_t sum;
    __asm("smmla %0, %1, %2, %3" : "=r"(sum) : "r"(a), "r"(b), "r"(summand));
    return sum;
#else
    return summand + (int32_t)(((int64_t)a * b) >> 32);
#endif
}

/* x / 2^shift, down, saturated to the whole range of a byte; 1 <= shift <= 31, a literal. */
ENTRAIN_INLINE int32_t entrain_saturated_byte(int32_t x, int32_t shift, bool is_unsigned) {
#if defined(ENTRAIN_SAT)
    int32_t byte;
    if (is_unsigned) {
        __asm("usat %0, #8, %1, asr %2" : "=r"(byte) : "r"(x), "i"(shift));
    } else {
        __asm("ssat %0, #8, %1, asr %2" : "=r"(byte) : "r"(x), "i"(shift));
    }
    return byte;
#else
    return entrain_clip(x >> shift, is_unsigned ? 0 : -128, is_unsigned ? 255 : 127);
#endif
}

/* The same, then clipped to bounds within that range. */
ENTRAIN_INLINE int32_t entrain_clipped_byte(int32_t x, int32_t shift, int32_t low, int32_t high,
                                            bool is_unsigned) {
    const int32_t least = is_unsigned ? 0 : INT8_MIN;
    const int32_t most = is_unsigned ? UINT8_MAX : INT8_MAX;
    const int32_t byte = entrain_saturated_byte(x, shift, is_unsigned);
    const int32_t raised = (low > least && byte < low) ? low : byte;
    return (high < most && raised > high) ? high : raised;
}

/* A sum times 2^rise, which the lowering proves to fit: with it the shift is 33 at least. */
ENTRAIN_INLINE int32_t entrain_risen(int32_t sum, int32_t rise) {
    return (int32_t)((uint32_t)sum << rise);
}

/* One sum to 8 bits. The low word of the product cannot matter for such a shift.
 *
 * Bounds that are the ends of a type cost one saturating instruction. Another lower bound is taken
 * off, so that it becomes 0. */
ENTRAIN_INLINE int32_t entrain_rescaled(int32_t sum, int32_t multiplier,
                                        struct entrain_rescale to) {
    const int32_t drop = to.shift - 32;
    const int32_t half = (int32_t)1 << (drop - 1);
    if (to.shift > ENTRAIN_ZERO_POINT_JOINS) {
        const int32_t steps = entrain_add_high_product(half, sum, multiplier) >> drop;
        return entrain_clip(steps + to.zero_point, to.low, to.high);
    }
    const bool is_signed = to.low == -128 && to.high == 127;
    const bool is_unsigned = to.low == 0 && to.high == 255;
    const int32_t base = (is_signed || is_unsigned) ? 0 : to.low;
    const int32_t joined = half + (to.zero_point - base) * ((int32_t)1 << drop);
    const int32_t fine = entrain_add_high_product(joined, sum, multiplier);
    if (base == 0 && (is_signed || is_unsigned)) {
        return entrain_saturated_byte(fine, drop, is_unsigned);
    }
    const int32_t risen = (fine >> drop) & ~(fine >> 31);
    return (risen < to.high - base ? risen : to.high - base) + base;
}

#endif
