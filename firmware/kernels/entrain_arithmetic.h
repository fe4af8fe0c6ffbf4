/* The integer arithmetic of deploy/arithmetic.py, and the few single-precision steps beside it.
 *
 * Host, device and numpy agree to the last bit: integers are exact, and IEEE single precision is
 * too when no multiply and add are fused (-ffp-contract=off) and errno is not touched
 * (-fno-math-errno lets the square root be one instruction; IEEE 754 rounds it correctly). */
#ifndef ENTRAIN_ARITHMETIC_H
#define ENTRAIN_ARITHMETIC_H

#include <stdint.h>

#define NOINLINE __attribute__((noinline))

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

/* clip(zero_point + nearest(steps)), ties to even. Adding and taking away 1.5 * 2^23 rounds exactly
 * as the processor's default rounding mode does for |steps| < 2^22; the clip comes first. */
static inline int32_t entrain_quantize(float steps, int32_t zero_point, int32_t low, int32_t high) {
    const float least = (float)(low - zero_point);
    const float most = (float)(high - zero_point);
    const float raised = (steps > least) ? steps : least;
    const float clipped = (raised < most) ? raised : most;
    const float magic = 12582912.0f;
    const float shifted = clipped + magic;
    return (int32_t)(shifted - magic) + zero_point;
}

static inline float entrain_square_root(float x) {
    return __builtin_sqrtf(x);
}

#endif
