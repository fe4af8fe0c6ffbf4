/* The depthwise convolution for cores without vectors: one channel at a time, as a plane of 16-bit
 * numbers in which two neighbours of a row are one word for SMLAD. */
#ifndef ENTRAIN_DEPTHWISE_PLANE_H
#define ENTRAIN_DEPTHWISE_PLANE_H

/* Numbers in a row of the plane: even, and one more than is used can be read. */
ENTRAIN_INLINE int32_t entrain_plane_pitch(struct entrain_depthwise of) {
    return entrain_is_line(of) ? 1
                               : (entrain_seen_columns(of.window, of.output.columns) + 2) / 2 * 2;
}

ENTRAIN_INLINE void entrain_plane_fill(int16_t *plane, int32_t count, int32_t zero_point) {
    const uint32_t pair = (uint32_t)(zero_point & 0xFFFF) * 0x00010001u;
    const int32_t whole = count / 4 * 4;
    for (int32_t i = 0; i < whole; i += 4) {
        __builtin_memcpy(plane + i, &pair, sizeof pair);
        __builtin_memcpy(plane + i + 2, &pair, sizeof pair);
        ENTRAIN_BARRIER();
    }
    for (int32_t i = whole; i < count; i++) {
        plane[i] = (int16_t)zero_point;
        ENTRAIN_BARRIER();
    }
}

/* Writes so many rows of one channel from input row `start` on. Columns outside the image stay as
 * they are, and so do rows if all output rows are one band. */
ENTRAIN_INLINE void entrain_plane_gather(const uint8_t *channel, int16_t *plane, int32_t start,
                                         int32_t rows, struct entrain_depthwise of) {
    const int32_t pitch = entrain_plane_pitch(of);
    const struct entrain_span across = entrain_span_of(
        -of.window.left, entrain_seen_columns(of.window, of.output.columns), of.image.columns);
    const struct entrain_span down = entrain_span_of(start, rows, of.image.rows);
    if (of.band < of.output.rows) {
        entrain_plane_fill(plane, down.before * pitch, of.zero_point);
        entrain_plane_fill(plane + (rows - down.after) * pitch, down.after * pitch, of.zero_point);
    }
    int16_t *to = plane + down.before * pitch + across.before;
    const uint8_t *from =
        channel + down.first * of.image.row_bytes + across.first * of.image.pixel_bytes;
    for (int32_t row = 0; row < down.count; row++) {
        const uint8_t *pixel = from;
#pragma GCC unroll 8
        for (int32_t column = 0; column < across.count; column++) {
            to[column] = of.is_unsigned ? (int16_t)*pixel : (int16_t)(int8_t)*pixel;
            pixel += of.image.pixel_bytes;
        }
        to += pitch;
        from += of.image.row_bytes;
    }
}

/* The bias for bytes as they are; the given one is for signed bytes. */
ENTRAIN_INLINE int32_t entrain_plane_bias(const int8_t *weights, int32_t bias,
                                          struct entrain_depthwise of) {
    int32_t sum = 0;
    for (int32_t u = 0; u < (of.is_unsigned ? of.window.rows : 0); u++) {
        for (int32_t v = 0; v < of.window.columns; v++) {
            sum += weights[entrain_weight_at(u, v, of)];
        }
    }
    return bias - ENTRAIN_UNSIGNED_OFFSET * sum;
}

ENTRAIN_INLINE uint8_t entrain_depthwise_byte(int32_t sum, int32_t multiplier,
                                              struct entrain_depthwise of) {
    return (uint8_t)entrain_rescaled(entrain_risen(sum, of.rise), multiplier, of.rescale);
}

/* One channel of as many output rows as the plane is for: any kernel, on any core. */
ENTRAIN_INLINE void entrain_plane_one_by_one(const int16_t *plane, const int8_t *weights,
                                             int32_t bias, int32_t multiplier, uint8_t *output,
                                             int32_t rows, struct entrain_depthwise of) {
    const int32_t pitch = entrain_plane_pitch(of);
    for (int32_t y = 0; y < rows; y++) {
        const int16_t *corner = plane + y * of.window.row_stride * pitch;
        uint8_t *to = output + y * of.output.row_bytes;
        for (int32_t x = 0; x < of.output.columns; x++) {
            int32_t sum = bias;
#pragma GCC unroll 4
            for (int32_t u = 0; u < of.window.rows; u++) {
                const int16_t *row = corner + u * of.window.row_dilation * pitch;
#pragma GCC unroll 4
                for (int32_t v = 0; v < of.window.columns; v++) {
                    sum +=
                        row[v * of.window.column_dilation] * weights[entrain_weight_at(u, v, of)];
                }
            }
            *to = entrain_depthwise_byte(sum, multiplier, of);
            to += of.output.pixel_bytes;
            corner += of.window.column_stride;
        }
    }
}

#if defined(ENTRAIN_DSP)
#include "entrain_depthwise_dsp.h"
#else
#define entrain_plane_convolve entrain_plane_one_by_one
#endif

/* The rows of the plane that the next band sees too, to its beginning. */
ENTRAIN_INLINE void entrain_plane_keep(int16_t *plane, int32_t kept, struct entrain_depthwise of) {
    const int32_t pitch = (int32_t)sizeof *plane * entrain_plane_pitch(of);
    uint8_t *const bytes = (uint8_t *)plane;
    entrain_copy_bytes(bytes, bytes + (entrain_seen_rows(of.window, of.band) - kept) * pitch,
                       kept * pitch);
}

ENTRAIN_INLINE void entrain_depthwise(const void *image, const int8_t *weights, const int32_t *bias,
                                      const int32_t *multipliers, void *scratch, void *output,
                                      struct entrain_depthwise of) {
    int16_t *plane = scratch;
    const int32_t pitch = entrain_plane_pitch(of);
    entrain_plane_fill(plane, entrain_seen_rows(of.window, of.band) * pitch + 1, of.zero_point);
    for (int32_t c = 0; c < of.image.channels; c++) {
        const int8_t *own = weights + c * entrain_weights_of(of);
        for (int32_t y = 0; y < of.output.rows; y += of.band) {
            const int32_t left = of.output.rows - y;
            const int32_t rows = (left < of.band) ? left : of.band;
            const int32_t start = y * of.window.row_stride - of.window.top;
            const int32_t kept = (y > 0) ? entrain_kept_rows(of.window) : 0;
            entrain_plane_keep(plane, kept, of);
            entrain_plane_gather((const uint8_t *)image + c * of.image.channel_bytes,
                                 plane + kept * pitch, start + kept,
                                 entrain_seen_rows(of.window, rows) - kept, of);
            const int32_t first = entrain_plane_bias(own, bias[c], of);
            const int32_t multiplier = multipliers[of.rescale.for_each_channel ? c : 0];
            uint8_t *to = (uint8_t *)output + y * of.output.row_bytes + c * of.output.channel_bytes;
            if (entrain_is_line(of)) {
                entrain_plane_convolve(plane, own, first, multiplier, to, 1,
                                       entrain_depthwise_turned(of, rows));
            } else {
                entrain_plane_convolve(plane, own, first, multiplier, to, rows, of);
            }
        }
    }
}

#endif
