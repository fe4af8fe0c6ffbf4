/* Which instruction set the kernels are compiled for, and its instructions under one name each.
 *
 *   ENTRAIN_MVE     Helium: Cortex-M55 and M85
 *   ENTRAIN_DSP     SMLAD and its kin: Cortex-M4, M7, M33
 *   ENTRAIN_SCALAR  everything else: Cortex-M0 to M3, and this computer
 *
 * Those for DSP and Helium are written for gcc, with optimisation: their assembly wants every
 * register and literal constants. ENTRAIN_PORTABLE chooses plain C on any core, for other compilers
 * and for debugging: the same results, several times slower.
 *
 * A computer that compiles with ENTRAIN_EMULATE_DSP runs the kernels for DSP with the same
 * instructions written in C, so that a sanitizer can look at them. */
#ifndef ENTRAIN_ISA_H
#define ENTRAIN_ISA_H

#include <stdint.h>

#define ENTRAIN_INLINE static inline __attribute__((always_inline))

/* Loads and stores stay on their side of it: the compiler takes none early, gathers no bytes to
 * words, and makes no loop a call of memset or memcpy, which take a byte at a time on these cores.
 */
#define ENTRAIN_BARRIER() __asm volatile("" ::: "memory")

#if !defined(ENTRAIN_PORTABLE)
#if defined(__ARM_FEATURE_SIMD32)
#define ENTRAIN_SIMD32 1 /* its instructions, on cores with Helium too */
#endif
#if defined(__ARM_FEATURE_SAT)
#define ENTRAIN_SAT 1
#endif
#if defined(ENTRAIN_SIMD32) && (defined(__clang__) || !defined(__OPTIMIZE__))
#error "Entrain's kernels for DSP and Helium need gcc and -O1 or more; or define ENTRAIN_PORTABLE"
#endif
#endif

#if defined(__ARM_FEATURE_MVE) && !defined(ENTRAIN_PORTABLE)
#define ENTRAIN_MVE 1
#include <arm_mve.h>
#elif defined(ENTRAIN_SIMD32) || defined(ENTRAIN_EMULATE_DSP)
#define ENTRAIN_DSP 1
#else
#define ENTRAIN_SCALAR 1
#endif

/* Four bytes at any address, the first one lowest. */
ENTRAIN_INLINE uint32_t entrain_load_word(const void *bytes) {
    uint32_t word;
    __builtin_memcpy(&word, bytes, sizeof word);
    return word;
}

#if defined(ENTRAIN_SIMD32)
#include <arm_acle.h>

/* Bytes 0 and 2 as two signed halves. */
ENTRAIN_INLINE uint32_t entrain_sxtb16(uint32_t x) {
    return (uint32_t)__sxtb16((int8x4_t)x);
}

/* Bytes 1 and 3 as two signed halves; gcc has no intrinsic for the rotated form. */
ENTRAIN_INLINE uint32_t entrain_sxtb16_ror8(uint32_t x) {
    uint32_t halves;
    __asm("sxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(x));
    return halves;
}

ENTRAIN_INLINE uint32_t entrain_uxtb16(uint32_t x) {
    return (uint32_t)__uxtb16((uint8x4_t)x);
}

ENTRAIN_INLINE uint32_t entrain_uxtb16_ror8(uint32_t x) {
    uint32_t halves;
    __asm("uxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(x));
    return halves;
}

/* sum + low half * low half + high half * high half, as signed numbers. */
ENTRAIN_INLINE int32_t entrain_smlad(uint32_t a, uint32_t b, int32_t sum) {
    return __smlad((int16x2_t)a, (int16x2_t)b, sum);
}

#elif defined(ENTRAIN_EMULATE_DSP)

ENTRAIN_INLINE uint32_t entrain_halves(int32_t low, int32_t high) {
    return ((uint32_t)high << 16) | ((uint32_t)low & 0xFFFFu);
}

ENTRAIN_INLINE uint32_t entrain_sxtb16(uint32_t x) {
    return entrain_halves((int8_t)(x & 0xFFu), (int8_t)((x >> 16) & 0xFFu));
}

ENTRAIN_INLINE uint32_t entrain_sxtb16_ror8(uint32_t x) {
    return entrain_sxtb16(x >> 8);
}

ENTRAIN_INLINE uint32_t entrain_uxtb16(uint32_t x) {
    return x & 0x00FF00FFu;
}

ENTRAIN_INLINE uint32_t entrain_uxtb16_ror8(uint32_t x) {
    return entrain_uxtb16(x >> 8);
}

ENTRAIN_INLINE int32_t entrain_smlad(uint32_t a, uint32_t b, int32_t sum) {
    const int32_t low = (int16_t)(a & 0xFFFFu) * (int16_t)(b & 0xFFFFu);
    const int32_t high = (int16_t)(a >> 16) * (int16_t)(b >> 16);
    return sum + low + high;
}

#endif

/* The high word of a * b, to nearest. */
ENTRAIN_INLINE int32_t entrain_rounded_high_product(int32_t a, int32_t b) {
#if defined(ENTRAIN_SIMD32)
    int32_t high;
    __asm("smmulr %0, %1, %2" : "=r"(high) : "r"(a), "r"(b));
    return high;
#else
    const int64_t product = (int64_t)a * b;
    return (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);
#endif
}

#endif
