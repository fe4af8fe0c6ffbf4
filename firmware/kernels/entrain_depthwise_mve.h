/* The depthwise convolution with vectors: strips for whole blocks of 16 channels and small kernels,
 * patches for the rest. Here is what a block's sums need to become bytes: the four vectors of sums
 * hold channels 0, 4, 8, 12 and so on, because narrowing puts even and odd lanes back in order. */
#ifndef ENTRAIN_DEPTHWISE_MVE_H
#define ENTRAIN_DEPTHWISE_MVE_H

ENTRAIN_INLINE void entrain_block_fill(int8_t *plane, int32_t pixels, struct entrain_depthwise of) {
    const int32_t byte = of.zero_point - (of.is_unsigned ? ENTRAIN_UNSIGNED_OFFSET : 0);
    for (int32_t i = 0; i < pixels; i++) {
        vstrbq_s8(plane + i * ENTRAIN_CHANNEL_BLOCK, vdupq_n_s8((int8_t)byte));
    }
}

/* Sixteen numbers in the order of the sums. */
ENTRAIN_INLINE void entrain_block_order(const int32_t *numbers, int32_t *ordered) {
    const int32x4x4_t quarters = vld4q_s32(numbers);
#pragma GCC unroll 4
    for (int32_t i = 0; i < 4; i++) {
        vstrwq_s32(ordered + 4 * i, quarters.val[i]);
    }
}

/* The multipliers of a block in that order, or the one that all share. */
ENTRAIN_INLINE void entrain_block_multipliers(const int32_t *multipliers, int32_t channel,
                                              int32_t *ordered, struct entrain_depthwise of) {
    if (of.rescale.for_each_channel) {
        entrain_block_order(multipliers + channel, ordered);
    } else {
        *ordered = *multipliers;
    }
}

/* The 16 bytes of an output pixel from its even and odd channels, clipped. */
ENTRAIN_INLINE int8x16_t entrain_block_bytes(int16x8_t even, int16x8_t odd,
                                             struct entrain_rescale to) {
    even = (to.zero_point == 0) ? even : vqaddq_n_s16(even, (int16_t)to.zero_point);
    odd = (to.zero_point == 0) ? odd : vqaddq_n_s16(odd, (int16_t)to.zero_point);
    if (to.is_unsigned) {
        uint8x16_t bytes = vqmovunbq_s16(vreinterpretq_u8_s16(even), even);
        bytes = vqmovuntq_s16(bytes, odd);
        bytes = (to.low > 0) ? vmaxq_u8(bytes, vdupq_n_u8((uint8_t)to.low)) : bytes;
        bytes = (to.high < 255) ? vminq_u8(bytes, vdupq_n_u8((uint8_t)to.high)) : bytes;
        return vreinterpretq_s8_u8(bytes);
    }
    int8x16_t bytes = vqmovnbq_s16(vreinterpretq_s8_s16(even), even);
    bytes = vqmovntq_s16(bytes, odd);
    bytes = (to.low > -128) ? vmaxq_s8(bytes, vdupq_n_s8((int8_t)to.low)) : bytes;
    return (to.high < 127) ? vminq_s8(bytes, vdupq_n_s8((int8_t)to.high)) : bytes;
}

/* Sums times their multipliers: high words, shifted so far that 16 bits at most are left. */
ENTRAIN_INLINE int32x4_t entrain_block_scaled(int32x4_t sums, int32x4_t multipliers,
                                              struct entrain_depthwise of) {
    const int32_t drop = of.rescale.shift - 32;
    sums = (of.rise > 0) ? vshlq_n_s32(sums, of.rise) : sums;
    sums = vmulhq_s32(sums, multipliers);
    return (drop > 16) ? vshrq_n_s32(sums, drop > 16 ? drop - 16 : 1) : sums;
}

/* Two quarters as 16-bit steps, rounded: the one in even, the other in odd lanes. */
ENTRAIN_INLINE int16x8_t entrain_block_half(int32x4_t low, int32x4_t high,
                                            struct entrain_depthwise of) {
    const int32_t drop = (of.rescale.shift - 32 > 16) ? 16 : of.rescale.shift - 32;
    const int16x8_t half = vqrshrnbq_n_s32(vreinterpretq_s16_s32(low), low, drop);
    return vqrshrntq_n_s32(half, high, drop);
}

ENTRAIN_INLINE int32x4_t entrain_block_multiplier(const int32_t *multipliers, int32_t quarter,
                                                  struct entrain_depthwise of) {
    return of.rescale.for_each_channel ? vldrwq_s32(multipliers + 4 * quarter)
                                       : vdupq_n_s32(*multipliers);
}

#include "entrain_depthwise_strip.h"

#include "entrain_depthwise_patches.h"

ENTRAIN_INLINE void entrain_depthwise(const void *image, const int8_t *weights, const int32_t *bias,
                                      const int32_t *multipliers, void *scratch, void *output,
                                      struct entrain_depthwise of) {
    if (of.strips > 0) {
        entrain_depthwise_strips(image, weights, bias, multipliers, scratch, output, of);
    }
    if (of.strips < of.image.channels) {
        entrain_depthwise_patches(image, weights, bias, multipliers, scratch, output, of.strips,
                                  of);
    }
}

#endif
