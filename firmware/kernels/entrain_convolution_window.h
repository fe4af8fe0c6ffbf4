/* What convolutions and pooling share: images with channels last, and windows that move over them.
 * All numbers are literal constants where a kernel is called, so the compiler specialises it. */
#ifndef ENTRAIN_CONVOLUTION_WINDOW_H
#define ENTRAIN_CONVOLUTION_WINDOW_H

#include "entrain_bytes.h"
#include "entrain_rescale.h"

/* The byte of (row, column, channel) lies at row * row_bytes + column * pixel_bytes + channel *
 * channel_bytes; only entrain_convolution reads images whose channels do not lie together. */
struct entrain_image {
    int32_t rows;
    int32_t columns;
    int32_t channels;
    int32_t row_bytes;
    int32_t pixel_bytes;
    int32_t channel_bytes;
};

/* Output (y, x) sees input rows y * row_stride - top + u * row_dilation for 0 <= u < rows, and
 * columns likewise. */
struct entrain_window {
    int32_t rows;
    int32_t columns;
    int32_t row_stride;
    int32_t column_stride;
    int32_t row_dilation;
    int32_t column_dilation;
    int32_t top;
    int32_t left;
};

/* How many rows (or columns) of the input so many outputs in a row see. */
ENTRAIN_INLINE int32_t entrain_seen_rows(struct entrain_window window, int32_t outputs) {
    return (outputs - 1) * window.row_stride + (window.rows - 1) * window.row_dilation + 1;
}

ENTRAIN_INLINE int32_t entrain_seen_columns(struct entrain_window window, int32_t outputs) {
    return (outputs - 1) * window.column_stride + (window.columns - 1) * window.column_dilation + 1;
}

/* How many input rows both a band of output rows and the one behind it see. */
ENTRAIN_INLINE int32_t entrain_kept_rows(struct entrain_window window) {
    const int32_t kept = (window.rows - 1) * window.row_dilation + 1 - window.row_stride;
    return (kept > 0) ? kept : 0;
}

/* What of an axis is seen: `count` rows (or columns) from `first` on, and the padding on both sides
 * of them. */
struct entrain_span {
    int32_t before;
    int32_t first;
    int32_t count;
    int32_t after;
};

/* The span of `length` rows from `start` on, of which only those from 0 to `extent` exist. */
ENTRAIN_INLINE struct entrain_span entrain_span_of(int32_t start, int32_t length, int32_t extent) {
    const int32_t first = entrain_clip(start, 0, extent);
    const int32_t count = entrain_clip(start + length, 0, extent) - first;
    const int32_t before = entrain_clip(-start, 0, length);
    return (struct entrain_span){before, first, count, length - before - count};
}

#endif
