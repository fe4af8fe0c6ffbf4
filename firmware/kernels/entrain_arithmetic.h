/* The integer arithmetic of deploy/arithmetic/requantization.py. Host, device and numpy agree to
 * the last bit. */
#ifndef ENTRAIN_ARITHMETIC_H
#define ENTRAIN_ARITHMETIC_H

#include <stdint.h>

/* A function of its own, whatever the compiler knows of its arguments. With noinline alone gcc 12
 * makes a copy for the arena's addresses, loses sight of what the copy writes, and drops the call
 * (-O2, x86-64). */
#if defined(__GNUC__) && !defined(__clang__)
#define NOINLINE __attribute__((noinline, noipa))
#else
#define NOINLINE __attribute__((noinline))
#endif

static inline int32_t entrain_clip(int32_t x, int32_t low, int32_t high) {
    const int32_t raised = (x > low) ? x : low;
    return (raised < high) ? raised : high;
}

/* clip(zero_point + total / 2^shift), to nearest, halves upwards. 1 <= shift <= 62.
 *
 * The lowering proves for every layer and any input that |total| < 2^61 and that |total| / 2^shift
 * is about 2^29 at most, so nothing here can overflow; it refuses a model for which it cannot. The
 * shift of a negative number is arithmetic, as gcc and clang define it. */
static inline int32_t entrain_requantize(int64_t total, int32_t shift, int32_t zero_point,
                                         int32_t low, int32_t high) {
    const int64_t half = (int64_t)1 << (shift - 1);
    return entrain_clip((int32_t)((total + half) >> shift) + zero_point, low, high);
}

#endif
