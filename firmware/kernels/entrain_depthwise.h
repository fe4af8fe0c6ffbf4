/* Depthwise convolution: each channel of an image with a kernel of its own.
 *
 * Channel by channel a band of output rows is computed at a time: the rows that it sees are
 * gathered as a plane of their own in the scratch, with the zero point around the image, so that
 * whatever follows knows no borders and no strides of the image. Rows that the next band sees too
 * stay there: none is read again once it has been gathered, so the output may take the bytes of the
 * image. With vectors, small kernels are computed for 16 channels at a time if there are as many,
 * see entrain_depthwise_strip.h.
 *
 * Weights lie [channel][column][row], those of a small kernel, of no more than four rows and
 * columns, four of each; behind the last ones of a channel are zeros, up to a multiple of 16. There
 * are whole blocks of 16 channels, of the bias and multipliers too. The zero point is folded into
 * the bias, and for unsigned images as if 128 had been taken off every byte. */
#ifndef ENTRAIN_DEPTHWISE_H
#define ENTRAIN_DEPTHWISE_H

#include "entrain_convolution_window.h"
#include "entrain_matmul.h"

/* Lanes of a vector of bytes. */
#define ENTRAIN_CHANNEL_BLOCK 16

/* Rows and columns of a small kernel's weights. */
#define ENTRAIN_SMALL_KERNEL 4

struct entrain_depthwise {
    struct entrain_image image;
    struct entrain_window window;
    struct entrain_image output;
    struct entrain_rescale rescale;
    int32_t zero_point; /* of the image, as it is stored */
    bool is_unsigned;   /* the image */
    bool is_small;      /* the kernel */
    int32_t band;       /* output rows at a time, without vectors */
    int32_t vector_band;
    int32_t strips; /* channels that are computed in blocks, with vectors */
    bool is_turned; /* by the kernel itself: rows are columns */
    int32_t rise;   /* the sums are multiplied by 2^rise before rescale */
};

/* An image of one column: its rows lie as neighbours, and the kernel is turned. */
ENTRAIN_INLINE bool entrain_is_line(struct entrain_depthwise of) {
    return of.image.columns == 1 && of.window.columns == 1 && of.output.columns == 1;
}

/* So many rows of one column as one row. */
ENTRAIN_INLINE struct entrain_depthwise entrain_depthwise_turned(struct entrain_depthwise of,
                                                                 int32_t rows) {
    of.window.columns = of.window.rows;
    of.window.column_stride = of.window.row_stride;
    of.window.column_dilation = of.window.row_dilation;
    of.window.rows = 1;
    of.output.columns = rows;
    of.output.pixel_bytes = of.output.row_bytes;
    of.is_turned = true;
    return of;
}

/* Bytes of a channel's weights. */
ENTRAIN_INLINE int32_t entrain_weights_of(struct entrain_depthwise of) {
    const int32_t count = of.is_small ? ENTRAIN_SMALL_KERNEL * ENTRAIN_SMALL_KERNEL
                                      : of.window.rows * of.window.columns;
    return (count + ENTRAIN_CHANNEL_BLOCK - 1) / ENTRAIN_CHANNEL_BLOCK * ENTRAIN_CHANNEL_BLOCK;
}

/* Which of a channel's weights belongs to a kernel position. */
ENTRAIN_INLINE int32_t entrain_weight_at(int32_t u, int32_t v, struct entrain_depthwise of) {
    return of.is_turned ? v : v * (of.is_small ? ENTRAIN_SMALL_KERNEL : of.window.rows) + u;
}

#if defined(ENTRAIN_MVE)
#include "entrain_depthwise_mve.h"
#else
#include "entrain_depthwise_plane.h"
#endif

#endif
