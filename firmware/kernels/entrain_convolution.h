/* Convolution of all channels with each other: patches of the image become rows of a matrix
 * product.
 *
 * A band of output rows is computed at a time. If there is padding, the rows of the image that the
 * band sees are first copied into the scratch with zero points around them and channels last: then
 * no patch knows borders or strides. Rows that the next band sees too stay there, so that the
 * output may take the bytes of the image as soon as they have been copied. As many patches as a
 * block of the matrix product has rows are gathered, whatever output rows they belong to, and every
 * weight is loaded once for all of them.
 *
 * Weights lie as for the matrix product, one row an output channel, in the order [kernel row]
 * [kernel column][channel]; the bias likewise. From each pixel of the result to the next it is the
 * same number of bytes, and from each channel to the next. */
#ifndef ENTRAIN_CONVOLUTION_H
#define ENTRAIN_CONVOLUTION_H

#include "entrain_convolution_window.h"
#include "entrain_matmul.h"

struct entrain_convolution {
    struct entrain_image image;
    struct entrain_window window;
    struct entrain_image output;
    struct entrain_matmul product; /* its rows are the pixels of the output */
    int32_t zero_point;            /* of the image, as it is stored */
    bool is_padded; /* or the pixels of a row do not lie one behind the other, without gaps */
    int32_t band;   /* output rows at a time */
};

/* Bytes of a row of the padded image. */
ENTRAIN_INLINE int32_t entrain_padded_pitch(struct entrain_convolution of) {
    return entrain_seen_columns(of.window, of.output.columns) * of.image.channels;
}

/* Copies pixels of one row of the image, whose channels come to lie together. */
ENTRAIN_INLINE void entrain_copy_pixels(uint8_t *to, const uint8_t *from, int32_t count,
                                        struct entrain_image image) {
    if (image.channel_bytes == 1 && image.pixel_bytes == image.channels) {
        entrain_copy_bytes(to, from, count * image.channels);
        return;
    }
    for (int32_t column = 0; column < count; column++) {
        for (int32_t channel = 0; channel < image.channels; channel++) {
            to[column * image.channels + channel] =
                from[column * image.pixel_bytes + channel * image.channel_bytes];
        }
    }
}

/* Copies so many input rows from `start` on; columns outside the image stay as they are. */
ENTRAIN_INLINE void entrain_pad(const uint8_t *image, uint8_t *padded, int32_t start, int32_t rows,
                                struct entrain_convolution of) {
    const int32_t pitch = entrain_padded_pitch(of);
    const struct entrain_span across =
        entrain_span_of(-of.window.left, pitch / of.image.channels, of.image.columns);
    const struct entrain_span down = entrain_span_of(start, rows, of.image.rows);
    const uint8_t *from =
        image + down.first * of.image.row_bytes + across.first * of.image.pixel_bytes;
    uint8_t *to = padded + across.before * of.image.channels;
    entrain_fill_bytes(padded, down.before * pitch, of.zero_point);
    for (int32_t row = 0; row < down.count; row++) {
        entrain_copy_pixels(to + (down.before + row) * pitch, from + row * of.image.row_bytes,
                            across.count, of.image);
    }
    entrain_fill_bytes(padded + (rows - down.after) * pitch, down.after * pitch, of.zero_point);
}

/* One row of the matrix product: what one output pixel sees, from `corner` on. */
ENTRAIN_INLINE void entrain_patch(const uint8_t *corner, int32_t pitch, uint8_t *patch,
                                  struct entrain_convolution of) {
    const bool is_dense = of.window.column_dilation == 1;
    const int32_t runs = is_dense ? 1 : of.window.columns;
    const int32_t run = (is_dense ? of.window.columns : 1) * of.image.channels;
#pragma GCC unroll 16
    for (int32_t u = 0; u < of.window.rows; u++) {
        const uint8_t *from = corner + u * of.window.row_dilation * pitch;
#pragma GCC unroll 4
        for (int32_t v = 0; v < runs; v++) {
            entrain_copy_bytes(patch, from, run);
            patch += run;
            from += of.window.column_dilation * of.image.channels;
        }
    }
}

/* scratch  aligned to 8 bytes: the padded rows of a band, filled up to whole words, if there is
 *          padding; then a block of patches; then what the matrix product needs */
ENTRAIN_INLINE void entrain_convolution(const void *image, const int8_t *weights,
                                        const int32_t *bias, const int32_t *multipliers,
                                        void *scratch, void *output,
                                        struct entrain_convolution of) {
    const int32_t pitch = of.is_padded ? entrain_padded_pitch(of) : of.image.row_bytes;
    const int32_t padded = of.is_padded ? entrain_seen_rows(of.window, of.band) * pitch : 0;
    const int32_t row = entrain_matmul_pitch(of.product);
    uint8_t *const patches = (uint8_t *)scratch + (padded + 7) / 8 * 8;
    uint8_t *const rest = patches + (of.product.block_rows * row + 7) / 8 * 8;
    struct entrain_matmul_operands at = {patches, weights, bias, multipliers, NULL, output};
    int32_t gathered = 0;
    entrain_fill_bytes(scratch, padded, of.zero_point);
    for (int32_t y = 0; y < of.output.rows; y += of.band) {
        const int32_t left = of.output.rows - y;
        const int32_t rows = (left < of.band) ? left : of.band;
        const int32_t start = y * of.window.row_stride - of.window.top;
        if (of.is_padded) {
            const int32_t kept = (y > 0) ? entrain_kept_rows(of.window) : 0;
            uint8_t *const bytes = scratch;
            entrain_copy_bytes(bytes, bytes + padded - kept * pitch, kept * pitch);
            entrain_pad(image, bytes + kept * pitch, start + kept,
                        entrain_seen_rows(of.window, rows) - kept, of);
        }
        const uint8_t *corner =
            of.is_padded ? scratch : (const uint8_t *)image + start * of.image.row_bytes;
        for (int32_t line = 0; line < rows; line++) {
            for (int32_t x = 0; x < of.output.columns; x++) {
                entrain_patch(corner + x * of.window.column_stride * of.image.channels, pitch,
                              patches + gathered * row, of);
                gathered++;
                if (gathered == of.product.block_rows) {
                    entrain_matmul_block(at, rest, of.product.block_rows, of.product);
                    at.output += of.product.block_rows * of.product.output_stride;
                    at.bias += of.product.block_rows * of.product.bias_stride;
                    gathered = 0;
                }
            }
            corner += of.window.row_stride * pitch;
        }
    }
    if (of.product.rows % of.product.block_rows != 0) {
        entrain_matmul_block(at, rest, of.product.rows % of.product.block_rows, of.product);
    }
}

#endif
