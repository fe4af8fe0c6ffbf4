/* Depthwise convolution: each channel of an image with a kernel of its own.
 *
 * Channel by channel (with vectors, 16 channels at a time) a band of output rows is computed at a
 * time: the rows that it sees are gathered as a plane of their own in the scratch, with the zero
 * point around the image, so that whatever follows knows no borders, strides of the image or left
 * over channels. Rows that the next band sees too stay there: none is read again once it has been
 * gathered, so the output may take the bytes of the image. Strips of rows that are not neighbours
 * are read again, see entrain_depthwise_strip.h.
 *
 * Weights of a small kernel, of no more than four rows and columns, lie [channel][column][row],
 * four of each; those of others [block of 16 channels][row][column][channel of the block]. What is
 * missing in either is 0. There are whole blocks of channels, of the bias and multipliers too. The
 * zero point is folded into the bias, and for unsigned images as if 128 had been taken off every
 * byte. */
#ifndef ENTRAIN_DEPTHWISE_H
#define ENTRAIN_DEPTHWISE_H

#include "entrain_convolution_window.h"

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
    int32_t sums;   /* products of so many positions always fit 16 bits together */
    bool is_turned; /* by the kernel itself: rows are columns */
    int32_t rise;   /* the sums are multiplied by 2^rise before rescale */
};

#if defined(ENTRAIN_MVE)
#include "entrain_depthwise_mve.h"
#else
#include "entrain_depthwise_plane.h"
#endif

#endif
