/* Sums of windows of an image, channel by channel, rescaled: average pooling and means.
 *
 * What a window covers outside the image counts as the zero point. */
#ifndef ENTRAIN_POOL_H
#define ENTRAIN_POOL_H

#include "entrain_convolution_window.h"

struct entrain_pool {
    struct entrain_image image;
    struct entrain_window window; /* without dilation */
    struct entrain_image output;
    struct entrain_rescale rescale;
    int32_t zero_point; /* of the image, as it is stored */
    bool is_unsigned;   /* the image */
    int32_t rise;       /* the sums are multiplied by 2^rise before rescale */
};

/* What a window covers: its first pixel, and how many rows and columns of the image. */
struct entrain_covered {
    const uint8_t *first;
    int32_t rows;
    int32_t columns;
};

ENTRAIN_INLINE struct entrain_covered entrain_pool_covered(const uint8_t *image, int32_t y,
                                                           int32_t x, struct entrain_pool of) {
    const struct entrain_span down =
        entrain_span_of(y * of.window.row_stride - of.window.top, of.window.rows, of.image.rows);
    const struct entrain_span across = entrain_span_of(x * of.window.column_stride - of.window.left,
                                                       of.window.columns, of.image.columns);
    return (struct entrain_covered){image + down.first * of.image.row_bytes +
                                        across.first * of.image.pixel_bytes,
                                    down.count, across.count};
}

/* At a time: the lanes of a vector, or the bytes of one word. */
#define ENTRAIN_POOLED_CHANNELS 4

#if defined(ENTRAIN_MVE)

ENTRAIN_INLINE int32x4_t entrain_pool_rescaled(int32x4_t sums, int32_t multiplier,
                                               struct entrain_pool of) {
    const struct entrain_rescale to = of.rescale;
    int32x4_t steps = (of.rise > 0) ? vshlq_n_s32(sums, of.rise) : sums;
    steps = vrshrq_n_s32(vmulhq_s32(steps, vdupq_n_s32(multiplier)), to.shift - 32);
    steps = vaddq_n_s32(steps, to.zero_point);
    return vminq_s32(vmaxq_s32(steps, vdupq_n_s32(to.low)), vdupq_n_s32(to.high));
}

ENTRAIN_INLINE void entrain_pool_channels(struct entrain_covered covered, int32_t sum,
                                          int32_t multiplier, uint8_t *output, int32_t channels,
                                          struct entrain_pool of) {
    const mve_pred16_t lanes = vctp32q((uint32_t)channels);
    int32x4_t sums = vdupq_n_s32(sum);
    for (int32_t row = 0; row < covered.rows; row++) {
        const uint8_t *pixel = covered.first + row * of.image.row_bytes;
        for (int32_t column = 0; column < covered.columns; column++) {
            const int32x4_t bytes = of.is_unsigned
                                        ? vreinterpretq_s32_u32(vldrbq_z_u32(pixel, lanes))
                                        : vldrbq_z_s32((const int8_t *)pixel, lanes);
            sums = vaddq_s32(sums, bytes);
            pixel += of.image.pixel_bytes;
        }
    }
    vstrbq_p_s32((int8_t *)output, entrain_pool_rescaled(sums, multiplier, of), lanes);
}

#else

ENTRAIN_INLINE int32_t entrain_byte_of(uint32_t word, int32_t byte, bool is_unsigned) {
    const uint32_t bits = (word >> (8 * byte)) & 0xFFu;
    return is_unsigned ? (int32_t)bits : (int8_t)bits;
}

ENTRAIN_INLINE uint32_t entrain_load_some(const uint8_t *bytes, int32_t count) {
    if (count == 4) {
        return entrain_load_word(bytes);
    }
    uint32_t word = 0;
    for (int32_t i = 0; i < count; i++) {
        word |= (uint32_t)bytes[i] << (8 * i);
    }
    return word;
}

ENTRAIN_INLINE void entrain_pool_channels(struct entrain_covered covered, int32_t sum,
                                          int32_t multiplier, uint8_t *output, int32_t channels,
                                          struct entrain_pool of) {
    int32_t sums[ENTRAIN_POOLED_CHANNELS] = {sum, sum, sum, sum};
    for (int32_t row = 0; row < covered.rows; row++) {
        const uint8_t *pixel = covered.first + row * of.image.row_bytes;
        for (int32_t column = 0; column < covered.columns; column++) {
            const uint32_t word = entrain_load_some(pixel, channels);
            for (int32_t c = 0; c < channels; c++) {
                sums[c] += entrain_byte_of(word, c, of.is_unsigned);
            }
            pixel += of.image.pixel_bytes;
        }
    }
    for (int32_t c = 0; c < channels; c++) {
        output[c] =
            (uint8_t)entrain_rescaled(entrain_risen(sums[c], of.rise), multiplier, of.rescale);
    }
}

#endif

ENTRAIN_INLINE void entrain_pool(const void *image, int32_t multiplier, void *output,
                                 struct entrain_pool of) {
    const int32_t whole = of.image.channels / ENTRAIN_POOLED_CHANNELS * ENTRAIN_POOLED_CHANNELS;
    for (int32_t y = 0; y < of.output.rows; y++) {
        for (int32_t x = 0; x < of.output.columns; x++) {
            struct entrain_covered covered = entrain_pool_covered(image, y, x, of);
            const int32_t sum = -of.zero_point * covered.rows * covered.columns;
            uint8_t *to = (uint8_t *)output + y * of.output.row_bytes + x * of.output.pixel_bytes;
            for (int32_t c = 0; c < whole; c += ENTRAIN_POOLED_CHANNELS) {
                entrain_pool_channels(covered, sum, multiplier, to, ENTRAIN_POOLED_CHANNELS, of);
                covered.first += ENTRAIN_POOLED_CHANNELS;
                to += ENTRAIN_POOLED_CHANNELS;
            }
            if (whole < of.image.channels) {
                entrain_pool_channels(covered, sum, multiplier, to, of.image.channels - whole, of);
            }
        }
    }
}

#endif
