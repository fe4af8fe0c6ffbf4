/* Settled oscillators z = h / |h|: the C of deploy/arithmetic/settling.py.
 *
 * Fields h are int32, states z are in steps of 2^-14; z = 0 where h = 0. No division, no table, no
 * 64-bit product. */
#ifndef ENTRAIN_SETTLING_H
#define ENTRAIN_SETTLING_H

#include "entrain_isa.h"

/* 1/sqrt(x / 2^16) in steps of 2^-15, for x from 2^14 to 2^16. Below 2^16. */
ENTRAIN_INLINE int32_t entrain_inverse_root(uint32_t x) {
    const uint32_t slope = 53851u - ((26863u * x) >> 16);
    const uint32_t start = 43762u - ((slope * x) >> 16);
    /* 1 - x y^2, which is what the product lacks of 2^32 */
    const int32_t e = (int32_t)(0u - ((start * start) >> 12) * x) >> 13;
    const int32_t correction = (e * (32800 + ((3 * e) >> 6))) >> 15;
    return (int32_t)(2u * start) + (((int32_t)start * correction + (1 << 18)) >> 19);
}

/* By how many bits a sum of squares is shifted right so that it fits 32; even. */
ENTRAIN_INLINE int32_t entrain_square_guard(int32_t components) {
    return (components < 4) ? 0 : (components < 16) ? 2 : (components < 64) ? 4 : 6;
}

/* Settles one field. `fields` is overwritten; at most 64 components. */
ENTRAIN_INLINE void entrain_settle(int32_t *fields, int16_t *states, int32_t components) {
    const int32_t guard = entrain_square_guard(components);
    uint32_t magnitudes = 1;
    for (int32_t o = 0; o < components; o++) {
        magnitudes |= (uint32_t)(fields[o] ^ (fields[o] >> 31));
    }
    const int32_t left = __builtin_clz(magnitudes) - 1;
    uint64_t squares = 0;
    for (int32_t o = 0; o < components; o++) {
        const int32_t shifted = (int32_t)((uint32_t)fields[o] << left);
        fields[o] = ((shifted >> 15) + 1) >> 1;
        const uint32_t square = (uint32_t)(fields[o] * fields[o]);
        squares = (guard == 0) ? (uint32_t)squares + square : squares + square;
    }
    const uint32_t s = (uint32_t)(squares >> guard) | 1u;
    const int32_t even = __builtin_clz(s) & ~1;
    const int32_t inverse = entrain_inverse_root((((s << even) >> 15) + 1u) >> 1);
    const int32_t shift = 16 + guard / 2 - even / 2;
    for (int32_t o = 0; o < components; o++) {
        states[o] = (int16_t)(((fields[o] * inverse >> shift) + 1) >> 1);
    }
}

#if defined(ENTRAIN_MVE)

ENTRAIN_INLINE int32x4_t entrain_inverse_roots(uint32x4_t x) {
    const uint32x4_t slope =
        vsubq_u32(vdupq_n_u32(53851u), vshrq_n_u32(vmulq_n_u32(x, 26863u), 16));
    const uint32x4_t start = vsubq_u32(vdupq_n_u32(43762u), vshrq_n_u32(vmulq_u32(slope, x), 16));
    const uint32x4_t product = vmulq_u32(vshrq_n_u32(vmulq_u32(start, start), 12), x);
    const int32x4_t e = vshrq_n_s32(vnegq_s32(vreinterpretq_s32_u32(product)), 13);
    const int32x4_t bend = vaddq_n_s32(vshrq_n_s32(vmulq_n_s32(e, 3), 6), 32800);
    const int32x4_t correction = vshrq_n_s32(vmulq_s32(e, bend), 15);
    const int32x4_t first = vreinterpretq_s32_u32(start);
    const int32x4_t change = vrshrq_n_s32(vmulq_s32(first, correction), 19);
    return vaddq_s32(vshlq_n_s32(first, 1), change);
}

/* Settles four fields at a time, [component][4], in place. */
ENTRAIN_INLINE void entrain_settle_four(int32_t *fields, int32_t components) {
    const int32_t guard = entrain_square_guard(components);
    uint32x4_t magnitudes = vdupq_n_u32(1);
    for (int32_t o = 0; o < components; o++) {
        const int32x4_t h = vldrwq_s32(fields + 4 * o);
        const int32x4_t magnitude = veorq_s32(h, vshrq_n_s32(h, 31));
        magnitudes = vorrq_u32(magnitudes, vreinterpretq_u32_s32(magnitude));
    }
    const int32x4_t left = vsubq_n_s32(vreinterpretq_s32_u32(vclzq_u32(magnitudes)), 1);
    uint32x4_t squares = vdupq_n_u32(0);
    uint32x4_t rest = vdupq_n_u32(0); /* of squares whose low bits are dropped */
    for (int32_t o = 0; o < components; o++) {
        const int32x4_t a = vrshrq_n_s32(vshlq_s32(vldrwq_s32(fields + 4 * o), left), 16);
        const uint32x4_t square = vreinterpretq_u32_s32(vmulq_s32(a, a));
        vstrwq_s32(fields + 4 * o, a);
        if (guard == 0) {
            squares = vaddq_u32(squares, square);
        } else {
            squares = vaddq_u32(squares, vshlq_r_u32(square, -guard));
            rest = vaddq_u32(rest, vandq_u32(square, vdupq_n_u32((1u << guard) - 1u)));
        }
    }
    if (guard > 0) {
        squares = vaddq_u32(squares, vshlq_r_u32(rest, -guard));
    }
    const uint32x4_t s = vorrq_u32(squares, vdupq_n_u32(1));
    const uint32x4_t half_even = vshrq_n_u32(vclzq_u32(s), 1);
    const int32x4_t halved = vreinterpretq_s32_u32(half_even);
    const uint32x4_t lifted = vshlq_u32(s, vshlq_n_s32(halved, 1));
    const int32x4_t inverse = entrain_inverse_roots(vrshrq_n_u32(lifted, 16));
    const int32x4_t shift = vsubq_n_s32(halved, 17 + guard / 2);
    for (int32_t o = 0; o < components; o++) {
        const int32x4_t product = vmulq_s32(vldrwq_s32(fields + 4 * o), inverse);
        vstrwq_s32(fields + 4 * o, vrshlq_s32(product, shift));
    }
}

#endif

#endif
