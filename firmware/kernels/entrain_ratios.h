/* Quotients whose divisor may have any size: the C of deploy/arithmetic/ratios.py.
 *
 * A factor is mantissa * 2^6 + exponent + 15 and stands for mantissa * 2^-exponent. */
#ifndef ENTRAIN_RATIOS_H
#define ENTRAIN_RATIOS_H

#include "entrain_arithmetic.h"
#include "entrain_isa.h"
#include "entrain_roots.h"

#define ENTRAIN_EXPONENT_BIAS 15
/* That of 1/0: nearly 2^32, so that everything but 0 saturates. */
#define ENTRAIN_ENDLESS (((1 << 17) - 1) * 64)

ENTRAIN_INLINE int64_t entrain_square(int32_t x) {
    return (int64_t)x * x;
}

ENTRAIN_INLINE int32_t entrain_factor(int32_t mantissa, int32_t exponent) {
    return mantissa * 64 + exponent + ENTRAIN_EXPONENT_BIAS;
}

/* 1/d, d above -2^31. */
ENTRAIN_INLINE int32_t entrain_reciprocal_factor(int32_t d) {
    if (d == 0) {
        return ENTRAIN_ENDLESS;
    }
    const uint32_t magnitude = (uint32_t)((d < 0) ? -d : d);
    const int32_t zeros = __builtin_clz(magnitude);
    const int32_t r = (int32_t)(UINT32_MAX / ((magnitude << zeros) >> 16));
    return entrain_factor((d < 0) ? -r : r, 48 - zeros);
}

/* 1/sqrt(s); 0 for a negative s. */
ENTRAIN_INLINE int32_t entrain_root_factor(int64_t s) {
    if (s <= 0) {
        return (s < 0) ? 0 : ENTRAIN_ENDLESS;
    }
    const entrain_root root = entrain_reciprocal_root(s);
    return entrain_factor(root.mantissa, root.exponent);
}

/* numerator * factor with `fraction` binary places, to nearest, saturated at plus and minus limit.
 * The shift of a negative number is arithmetic, as gcc and clang define it. */
ENTRAIN_INLINE int32_t entrain_scaled(int32_t numerator, int32_t factor, int32_t fraction,
                                      int32_t limit) {
    const int64_t product = (int64_t)numerator * (factor >> 6);
    const int32_t shift = (factor & 63) - ENTRAIN_EXPONENT_BIAS - fraction;
    int64_t result;
    if (shift > 0) {
        result = (product + ((int64_t)1 << (shift - 1))) >> shift;
    } else {
        const int32_t left = (shift < -31) ? 31 : -shift;
        const int32_t most = limit >> left;
        if (product > most) {
            return limit;
        }
        if (product < -(int64_t)most) {
            return -limit;
        }
        result = product * ((int64_t)1 << left);
    }
    const int64_t raised = (result > -(int64_t)limit) ? result : -(int64_t)limit;
    return (int32_t)((raised < limit) ? raised : limit);
}

#endif
