/* Sums of products in 64 bits, of which only 32 x 32 bits are ever multiplied, and back to 32. */
#ifndef ENTRAIN_WIDE_H
#define ENTRAIN_WIDE_H

#include "entrain_isa.h"

ENTRAIN_INLINE int64_t entrain_product(int32_t a, int32_t b) {
    return (int64_t)a * b;
}

/* (x + 2^(shift-1)) >> shift, which fits 32 bits; shift >= 1. The shift of a negative number is
 * arithmetic, as gcc and clang define it. */
ENTRAIN_INLINE int32_t entrain_narrow(int64_t x, int32_t shift) {
    return (int32_t)((x + ((int64_t)1 << (shift - 1))) >> shift);
}

#endif
