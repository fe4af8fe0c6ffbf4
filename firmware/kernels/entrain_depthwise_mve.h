/* The depthwise convolution with vectors: 16 channels at a time, as a plane of 16 bytes a pixel.
 *
 * Helium has no instruction that multiplies bytes and adds the products lane by lane in 32 bits. So
 * products have 16 bits, as many of them are added in 16 bits as surely fit, and such sums are
 * widened. Widening takes even and odd lanes apart, twice: the four sums of a block hold channels
 * 0, 4, 8, 12 and so on, and narrowing back puts all of them in order. */
#ifndef ENTRAIN_DEPTHWISE_MVE_H
#define ENTRAIN_DEPTHWISE_MVE_H

ENTRAIN_INLINE void entrain_block_fill(int8_t *plane, int32_t pixels, struct entrain_depthwise of) {
    const int32_t byte = of.zero_point - (of.is_unsigned ? ENTRAIN_UNSIGNED_OFFSET : 0);
    for (int32_t i = 0; i < pixels; i++) {
        vstrbq_s8(plane + i * ENTRAIN_CHANNEL_BLOCK, vdupq_n_s8((int8_t)byte));
    }
}

/* Writes so many rows of a block of channels from input row `start` on; columns outside the image
 * stay as they are. */
ENTRAIN_INLINE void entrain_block_gather(const int8_t *block, int8_t *plane, int32_t start,
                                         int32_t rows, mve_pred16_t lanes,
                                         struct entrain_depthwise of) {
    const int32_t columns = entrain_seen_columns(of.window, of.output.columns);
    const int32_t pitch = columns * ENTRAIN_CHANNEL_BLOCK;
    const struct entrain_span across = entrain_span_of(-of.window.left, columns, of.image.columns);
    const struct entrain_span down = entrain_span_of(start, rows, of.image.rows);
    entrain_block_fill(plane, down.before * columns, of);
    int8_t *to = plane + down.before * pitch + across.before * ENTRAIN_CHANNEL_BLOCK;
    const int8_t *from =
        block + down.first * of.image.row_bytes + across.first * of.image.pixel_bytes;
    for (int32_t row = 0; row < down.count; row++) {
        const int8_t *pixel = from;
#pragma GCC unroll 8
        for (int32_t column = 0; column < across.count; column++) {
            const int8x16_t bytes = vldrbq_z_s8(pixel, lanes);
            vstrbq_s8(to + column * ENTRAIN_CHANNEL_BLOCK,
                      of.is_unsigned ? veorq_s8(bytes, vdupq_n_s8(-128)) : bytes);
            pixel += of.image.pixel_bytes;
        }
        to += pitch;
        from += of.image.row_bytes;
    }
    entrain_block_fill(plane + (rows - down.after) * pitch, down.after * columns, of);
}

/* Four sums of a block: channels 0, 4, 8, 12 in the first, 1, 5, 9, 13 in the next and so on. */
struct entrain_block_sums {
    int32x4_t quarter[4];
};

/* The sums are complete here, and nothing is loaded earlier: the compiler would begin with all
 * kernel positions at once, and eight vector registers do not hold them. */
ENTRAIN_INLINE void entrain_block_settle(struct entrain_block_sums *sums) {
    __asm volatile(""
                   : "+w"(sums->quarter[0]), "+w"(sums->quarter[1]), "+w"(sums->quarter[2]),
                     "+w"(sums->quarter[3])
                   :
                   : "memory");
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

/* One output pixel's sums. */
ENTRAIN_INLINE struct entrain_block_sums entrain_block_sum(const int8_t *corner,
                                                           const int8_t *weights,
                                                           const int32_t *bias,
                                                           struct entrain_depthwise of) {
    const int32_t pitch =
        entrain_seen_columns(of.window, of.output.columns) * ENTRAIN_CHANNEL_BLOCK;
    const int32_t positions = of.window.rows * of.window.columns;
    struct entrain_block_sums sums;
#pragma GCC unroll 4
    for (int32_t i = 0; i < 4; i++) {
        sums.quarter[i] = vldrwq_s32(bias + 4 * i);
    }
    int16x8_t even = vdupq_n_s16(0);
    int16x8_t odd = vdupq_n_s16(0);
    int32_t held = 0;
    int32_t position = 0;
#pragma GCC unroll 4
    for (int32_t u = 0; u < of.window.rows; u++) {
#pragma GCC unroll 4
        for (int32_t v = 0; v < of.window.columns; v++) {
            const int8x16_t pixel =
                vldrbq_s8(corner + u * of.window.row_dilation * pitch +
                          v * of.window.column_dilation * ENTRAIN_CHANNEL_BLOCK);
            const int8x16_t weight = vldrbq_s8(weights + position * ENTRAIN_CHANNEL_BLOCK);
            const int16x8_t even_product = vmullbq_int_s8(pixel, weight);
            const int16x8_t odd_product = vmulltq_int_s8(pixel, weight);
            even = (held == 0) ? even_product : vaddq_s16(even, even_product);
            odd = (held == 0) ? odd_product : vaddq_s16(odd, odd_product);
            held++;
            position++;
            if (held == of.sums || position == positions) {
                sums.quarter[0] = vaddq_s32(sums.quarter[0], vmovlbq_s16(even));
                sums.quarter[1] = vaddq_s32(sums.quarter[1], vmovlbq_s16(odd));
                sums.quarter[2] = vaddq_s32(sums.quarter[2], vmovltq_s16(even));
                sums.quarter[3] = vaddq_s32(sums.quarter[3], vmovltq_s16(odd));
                held = 0;
                entrain_block_settle(&sums);
            }
        }
    }
    return sums;
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

/* The 16 bytes of an output pixel. */
ENTRAIN_INLINE int8x16_t entrain_block_rescaled(struct entrain_block_sums sums,
                                                const int32_t *multipliers,
                                                struct entrain_depthwise of) {
#pragma GCC unroll 4
    for (int32_t i = 0; i < 4; i++) {
        sums.quarter[i] =
            entrain_block_scaled(sums.quarter[i], entrain_block_multiplier(multipliers, i, of), of);
    }
    return entrain_block_bytes(entrain_block_half(sums.quarter[0], sums.quarter[2], of),
                               entrain_block_half(sums.quarter[1], sums.quarter[3], of),
                               of.rescale);
}

/* A block of channels of as many output rows as the plane is for. */
ENTRAIN_INLINE void entrain_block_convolve(const int8_t *plane, const int8_t *weights,
                                           const int32_t *bias, const int32_t *multipliers,
                                           int8_t *output, int32_t rows, mve_pred16_t lanes,
                                           struct entrain_depthwise of) {
    const int32_t pitch =
        entrain_seen_columns(of.window, of.output.columns) * ENTRAIN_CHANNEL_BLOCK;
    for (int32_t y = 0; y < rows; y++) {
        const int8_t *corner = plane + y * of.window.row_stride * pitch;
        int8_t *to = output + y * of.output.row_bytes;
        for (int32_t x = 0; x < of.output.columns; x++) {
            const struct entrain_block_sums sums = entrain_block_sum(corner, weights, bias, of);
            vstrbq_p_s8(to, entrain_block_rescaled(sums, multipliers, of), lanes);
            to += of.output.pixel_bytes;
            corner += of.window.column_stride * ENTRAIN_CHANNEL_BLOCK;
        }
    }
}

ENTRAIN_INLINE void entrain_depthwise_blocks(const void *image, const int8_t *weights,
                                             const int32_t *bias, const int32_t *multipliers,
                                             void *scratch, void *output,
                                             struct entrain_depthwise of) {
    int32_t ordered_bias[ENTRAIN_CHANNEL_BLOCK];
    int32_t ordered_multipliers[ENTRAIN_CHANNEL_BLOCK];
    int8_t *plane = scratch;
    const int32_t columns = entrain_seen_columns(of.window, of.output.columns);
    const int32_t pitch = columns * ENTRAIN_CHANNEL_BLOCK;
    entrain_block_fill(plane, entrain_seen_rows(of.window, of.vector_band) * columns, of);
    for (int32_t c = 0; c < of.image.channels; c += ENTRAIN_CHANNEL_BLOCK) {
        const mve_pred16_t lanes = vctp8q((uint32_t)(of.image.channels - c));
        entrain_block_order(bias + c, ordered_bias);
        entrain_block_multipliers(multipliers, c, ordered_multipliers, of);
        for (int32_t y = 0; y < of.output.rows; y += of.vector_band) {
            const int32_t left = of.output.rows - y;
            const int32_t rows = (left < of.vector_band) ? left : of.vector_band;
            const int32_t start = y * of.window.row_stride - of.window.top;
            const int32_t kept = (y > 0) ? entrain_kept_rows(of.window) : 0;
            const int32_t seen = entrain_seen_rows(of.window, of.vector_band);
            entrain_copy_bytes((uint8_t *)plane, (uint8_t *)plane + (seen - kept) * pitch,
                               kept * pitch);
            entrain_block_gather((const int8_t *)image + c, plane + kept * pitch, start + kept,
                                 entrain_seen_rows(of.window, rows) - kept, lanes, of);
            entrain_block_convolve(plane, weights + c * of.window.rows * of.window.columns,
                                   ordered_bias, ordered_multipliers,
                                   (int8_t *)output + y * of.output.row_bytes + c, rows, lanes, of);
        }
    }
}

#include "entrain_depthwise_strip.h"

ENTRAIN_INLINE void entrain_depthwise(const void *image, const int8_t *weights, const int32_t *bias,
                                      const int32_t *multipliers, void *scratch, void *output,
                                      struct entrain_depthwise of) {
    if (of.is_small) {
        entrain_depthwise_strips(image, weights, bias, multipliers, scratch, output, of);
    } else {
        entrain_depthwise_blocks(image, weights, bias, multipliers, scratch, output, of);
    }
}

#endif
