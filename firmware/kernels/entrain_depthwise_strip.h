/* Depthwise convolutions with vectors for small kernels: dot products.
 *
 * What two output rows see is gathered as a strip: for each column 16 channels of four bytes each,
 * the bytes of four rows. So a channel's patch is four words, one a column, and its dot product
 * with the channel's weights is one instruction; moved by a byte, the weights give that of the row
 * below. Rows that are further apart are computed one at a time, with the upper weights alone.
 *
 * From neighbouring rows to the next ones the strip moves on: rows that it has already move up, so
 * that no row is read again and the output may take the bytes of the image. */
#ifndef ENTRAIN_DEPTHWISE_STRIP_H
#define ENTRAIN_DEPTHWISE_STRIP_H

/* Bytes of a column of a strip. */
#define ENTRAIN_STRIP_COLUMN (ENTRAIN_CHANNEL_BLOCK * ENTRAIN_SMALL_KERNEL)

/* Whether two output rows fit the four rows of a strip. */
ENTRAIN_INLINE bool entrain_strip_is_double(struct entrain_depthwise of) {
    return of.window.row_stride == 1 && of.window.row_dilation == 1 &&
           of.window.rows < ENTRAIN_SMALL_KERNEL;
}

/* Output rows that a strip is for at a time. */
ENTRAIN_INLINE int32_t entrain_strip_together(struct entrain_depthwise of) {
    return entrain_strip_is_double(of) ? 2 : 1;
}

/* Whether the strip moves on; otherwise it is gathered anew. */
ENTRAIN_INLINE bool entrain_strip_moves(struct entrain_depthwise of) {
    return of.window.row_stride == 1 && of.window.row_dilation == 1;
}

/* Columns of a strip, those included that a patch of four columns reads beyond the kernel. */
ENTRAIN_INLINE int32_t entrain_strip_columns(struct entrain_depthwise of) {
    return entrain_seen_columns(of.window, of.output.columns) +
           (ENTRAIN_SMALL_KERNEL - of.window.columns) * of.window.column_dilation;
}

/* One column: bytes of four rows, each with its own distance to the next column. */
struct entrain_strip_rows {
    const int8_t *row[ENTRAIN_SMALL_KERNEL];
    int32_t step[ENTRAIN_SMALL_KERNEL];
};

/* Rows of the image, `row_dilation` apart; those outside read the zero points again and again. */
ENTRAIN_INLINE struct entrain_strip_rows entrain_strip_rows(const int8_t *block, int32_t start,
                                                            const int8_t *zero_points,
                                                            struct entrain_depthwise of) {
    struct entrain_strip_rows rows;
#pragma GCC unroll 4
    for (int32_t u = 0; u < ENTRAIN_SMALL_KERNEL; u++) {
        const int32_t row = start + u * of.window.row_dilation;
        const bool is_inside = row >= 0 && row < of.image.rows;
        rows.row[u] = is_inside ? block + row * of.image.row_bytes : zero_points;
        rows.step[u] = is_inside ? of.image.pixel_bytes : 0;
    }
    return rows;
}

/* Writes so many columns of the strip; the rows begin at the first one. In one piece, because the
 * compiler moves every vector through memory before it stores four of them. */
ENTRAIN_INLINE void entrain_strip_gather(int8_t *strip, struct entrain_strip_rows rows,
                                         int32_t columns, mve_pred16_t lanes,
                                         struct entrain_depthwise of) {
    for (int32_t column = 0; column < columns; column++) {
        uint32_t kept;
        __asm volatile(
            "vmrs %[kept], p0\n\t"
            "vmsr p0, %[lanes]\n\t"
            "vpstttt\n\t"
            "vldrbt.8 q0, [%[row0]]\n\t"
            "vldrbt.8 q1, [%[row1]]\n\t"
            "vldrbt.8 q2, [%[row2]]\n\t"
            "vldrbt.8 q3, [%[row3]]\n\t"
            "vmsr p0, %[kept]\n\t"
            ".if %c[flips]\n\t"
            "vmov.i8 q4, #0x80\n\t"
            "veor q0, q0, q4\n\t"
            "veor q1, q1, q4\n\t"
            "veor q2, q2, q4\n\t"
            "veor q3, q3, q4\n\t"
            ".endif\n\t"
            "vst40.8 {q0, q1, q2, q3}, [%[strip]]\n\t"
            "vst41.8 {q0, q1, q2, q3}, [%[strip]]\n\t"
            "vst42.8 {q0, q1, q2, q3}, [%[strip]]\n\t"
            "vst43.8 {q0, q1, q2, q3}, [%[strip]]!\n\t"
            : [strip] "+&r"(strip), [kept] "=&r"(kept)
            : [row0] "r"(rows.row[0]), [row1] "r"(rows.row[1]), [row2] "r"(rows.row[2]),
              [row3] "r"(rows.row[3]), [lanes] "r"((uint32_t)lanes), [flips] "i"(of.is_unsigned)
            : "q0", "q1", "q2", "q3", "q4", "memory");
#pragma GCC unroll 4
        for (int32_t u = 0; u < ENTRAIN_SMALL_KERNEL; u++) {
            rows.row[u] += rows.step[u];
        }
    }
}

/* Moves so many columns of the strip on to the next output rows, for which only the last one or two
 * rows are new. */
ENTRAIN_INLINE void entrain_strip_move(int8_t *strip, struct entrain_strip_rows rows,
                                       int32_t columns, mve_pred16_t lanes,
                                       struct entrain_depthwise of) {
    for (int32_t column = 0; column < columns; column++) {
        uint32_t kept;
        __asm volatile(
            "vmrs %[kept], p0\n\t"
            "vld40.8 {q0, q1, q2, q3}, [%[strip]]\n\t"
            "vld41.8 {q0, q1, q2, q3}, [%[strip]]\n\t"
            "vld42.8 {q0, q1, q2, q3}, [%[strip]]\n\t"
            "vld43.8 {q0, q1, q2, q3}, [%[strip]]\n\t"
            "vmsr p0, %[lanes]\n\t"
            ".if %c[together] == 2\n\t"
            "vpstt\n\t"
            "vldrbt.8 q4, [%[row2]]\n\t"
            "vldrbt.8 q5, [%[row3]]\n\t"
            ".else\n\t"
            "vpst\n\t"
            "vldrbt.8 q4, [%[row3]]\n\t"
            ".endif\n\t"
            "vmsr p0, %[kept]\n\t"
            ".if %c[flips]\n\t"
            "vmov.i8 q0, #0x80\n\t"
            "veor q4, q4, q0\n\t"
            ".if %c[together] == 2\n\t"
            "veor q5, q5, q0\n\t"
            ".endif\n\t"
            ".endif\n\t"
            ".if %c[together] == 2\n\t"
            "vst40.8 {q2, q3, q4, q5}, [%[strip]]\n\t"
            "vst41.8 {q2, q3, q4, q5}, [%[strip]]\n\t"
            "vst42.8 {q2, q3, q4, q5}, [%[strip]]\n\t"
            "vst43.8 {q2, q3, q4, q5}, [%[strip]]!\n\t"
            ".else\n\t"
            "vst40.8 {q1, q2, q3, q4}, [%[strip]]\n\t"
            "vst41.8 {q1, q2, q3, q4}, [%[strip]]\n\t"
            "vst42.8 {q1, q2, q3, q4}, [%[strip]]\n\t"
            "vst43.8 {q1, q2, q3, q4}, [%[strip]]!\n\t"
            ".endif"
            : [strip] "+&r"(strip), [kept] "=&r"(kept)
            : [row2] "r"(rows.row[2]), [row3] "r"(rows.row[3]), [lanes] "r"((uint32_t)lanes),
              [flips] "i"(of.is_unsigned), [together] "i"(entrain_strip_together(of))
            : "q0", "q1", "q2", "q3", "q4", "q5", "memory");
        rows.row[2] += rows.step[2];
        rows.row[3] += rows.step[3];
    }
}

/* A channel's dot products for the upper and the lower row. In one piece, because the compiler
 * would load the weights of all channels first. */
ENTRAIN_INLINE void entrain_strip_dot(uint32x4_t columns, const int8_t *weights, int32_t channel,
                                      int32_t *upper, int32_t *lower, struct entrain_depthwise of) {
    if (entrain_strip_is_double(of)) {
        __asm volatile("vldrw.u32 q0, [%q2, %4]\n\t"
                       "vldrw.u32 q1, [%3, %5]\n\t"
                       "vmladav.s8 %0, q0, q1\n\t"
                       "vshl.i32 q1, q1, #8\n\t"
                       "vmladav.s8 %1, q0, q1"
                       : "=&Te"(*upper), "=&Te"(*lower)
                       : "w"(columns), "r"(weights), "i"(4 * channel), "i"(16 * channel)
                       : "q0", "q1", "memory");
    } else {
        __asm volatile("vldrw.u32 q0, [%q1, %3]\n\t"
                       "vldrw.u32 q1, [%2, %4]\n\t"
                       "vmladav.s8 %0, q0, q1"
                       : "=&Te"(*upper)
                       : "w"(columns), "r"(weights), "i"(4 * channel), "i"(16 * channel)
                       : "q0", "q1", "memory");
        *lower = *upper;
    }
}

/* Numbers into lanes 0 and 2. */
ENTRAIN_INLINE int32x4_t entrain_even_lanes(int32_t first, int32_t second) {
    int32x4_t lanes;
    __asm volatile("vmov %q0[2], %q0[0], %1, %2" : "=w"(lanes) : "r"(first), "r"(second));
    return lanes;
}

/* Numbers into lanes 1 and 3. */
ENTRAIN_INLINE int32x4_t entrain_odd_lanes(int32x4_t lanes, int32_t first, int32_t second) {
    __asm volatile("vmov %q0[3], %q0[1], %1, %2" : "+w"(lanes) : "r"(first), "r"(second));
    return lanes;
}

/* A quarter of the block's channels, every fourth from `first` on, for two output rows. */
struct entrain_strip_quarter {
    int32x4_t upper;
    int32x4_t lower;
};

ENTRAIN_INLINE struct entrain_strip_quarter entrain_strip_sum(uint32x4_t columns,
                                                              const int8_t *weights, int32_t first,
                                                              struct entrain_depthwise of) {
    struct entrain_strip_quarter sums;
    int32_t upper[2];
    int32_t lower[2];
    entrain_strip_dot(columns, weights, first, &upper[0], &lower[0], of);
    entrain_strip_dot(columns, weights, first + 8, &upper[1], &lower[1], of);
    sums.upper = entrain_even_lanes(upper[0], upper[1]);
    sums.lower = entrain_strip_is_double(of) ? entrain_even_lanes(lower[0], lower[1]) : sums.upper;
    entrain_strip_dot(columns, weights, first + 4, &upper[0], &lower[0], of);
    entrain_strip_dot(columns, weights, first + 12, &upper[1], &lower[1], of);
    sums.upper = entrain_odd_lanes(sums.upper, upper[0], upper[1]);
    if (entrain_strip_is_double(of)) {
        sums.lower = entrain_odd_lanes(sums.lower, lower[0], lower[1]);
    }
    return sums;
}

ENTRAIN_INLINE struct entrain_strip_quarter
entrain_strip_scaled(struct entrain_strip_quarter sums, const int32_t *bias,
                     const int32_t *multipliers, int32_t quarter, struct entrain_depthwise of) {
    const int32x4_t added = vldrwq_s32(bias + 4 * quarter);
    const int32x4_t multiplier = entrain_block_multiplier(multipliers, quarter, of);
    sums.upper = entrain_block_scaled(vaddq_s32(sums.upper, added), multiplier, of);
    sums.lower = entrain_block_scaled(vaddq_s32(sums.lower, added), multiplier, of);
    return sums;
}

/* One output column: 16 channels of the upper row, and of the lower one where there is one. */
ENTRAIN_INLINE void entrain_strip_column(uint32x4_t columns, const int8_t *weights,
                                         const int32_t *bias, const int32_t *multipliers,
                                         int8_t *output, mve_pred16_t lanes,
                                         mve_pred16_t lower_lanes, struct entrain_depthwise of) {
    int16x8_t upper[2];
    int16x8_t lower[2];
#pragma GCC unroll 2
    for (int32_t odd = 0; odd < 2; odd++) {
        const struct entrain_strip_quarter low = entrain_strip_scaled(
            entrain_strip_sum(columns, weights, odd, of), bias, multipliers, odd, of);
        const struct entrain_strip_quarter high = entrain_strip_scaled(
            entrain_strip_sum(columns, weights, odd + 2, of), bias, multipliers, odd + 2, of);
        upper[odd] = entrain_block_half(low.upper, high.upper, of);
        lower[odd] = entrain_block_half(low.lower, high.lower, of);
    }
    vstrbq_p_s8(output, entrain_block_bytes(upper[0], upper[1], of.rescale), lanes);
    if (entrain_strip_is_double(of)) {
        vstrbq_p_s8(output + of.output.row_bytes,
                    entrain_block_bytes(lower[0], lower[1], of.rescale), lower_lanes);
    }
}

/* A block of channels. */
ENTRAIN_INLINE void entrain_strip_convolve(const int8_t *block, const int8_t *weights,
                                           const int32_t *bias, const int32_t *multipliers,
                                           int8_t *scratch, int8_t *output, mve_pred16_t lanes,
                                           struct entrain_depthwise of) {
    int8_t *const strip = scratch + ENTRAIN_CHANNEL_BLOCK;
    const struct entrain_span across = entrain_span_of(
        -of.window.left, entrain_seen_columns(of.window, of.output.columns), of.image.columns);
    const int32_t together = entrain_strip_together(of);
    int8_t *const within = strip + across.before * ENTRAIN_STRIP_COLUMN;
    const uint32x4_t steps = vmulq_n_u32(
        vidupq_n_u32(0, 1), (uint32_t)(of.window.column_dilation * ENTRAIN_STRIP_COLUMN));
    for (int32_t y = 0; y < of.output.rows; y += together) {
        const int32_t start = y * of.window.row_stride - of.window.top;
        const mve_pred16_t lower = (y + 1 < of.output.rows) ? lanes : 0;
        const struct entrain_strip_rows rows =
            entrain_strip_rows(block + across.first * of.image.pixel_bytes, start, scratch, of);
        if (y > 0 && entrain_strip_moves(of)) {
            entrain_strip_move(within, rows, across.count, lanes, of);
        } else {
            entrain_strip_gather(within, rows, across.count, lanes, of);
        }
        uint32x4_t columns = vaddq_n_u32(steps, (uint32_t)strip);
        int8_t *to = output + y * of.output.row_bytes;
        for (int32_t x = 0; x < of.output.columns; x++) {
            entrain_strip_column(columns, weights, bias, multipliers, to, lanes, lower, of);
            columns =
                vaddq_n_u32(columns, (uint32_t)(of.window.column_stride * ENTRAIN_STRIP_COLUMN));
            to += of.output.pixel_bytes;
        }
    }
}

/* scratch  16 zero points as they are stored, then the strip */
ENTRAIN_INLINE void entrain_depthwise_strips(const void *image, const int8_t *weights,
                                             const int32_t *bias, const int32_t *multipliers,
                                             void *scratch, void *output,
                                             struct entrain_depthwise of) {
    int32_t ordered_bias[ENTRAIN_CHANNEL_BLOCK];
    int32_t ordered_multipliers[ENTRAIN_CHANNEL_BLOCK];
    vstrbq_s8(scratch, vdupq_n_s8((int8_t)of.zero_point));
    entrain_block_fill((int8_t *)scratch + ENTRAIN_CHANNEL_BLOCK,
                       ENTRAIN_SMALL_KERNEL * entrain_strip_columns(of), of);
    for (int32_t c = 0; c < of.strips; c += ENTRAIN_CHANNEL_BLOCK) {
        entrain_block_order(bias + c, ordered_bias);
        entrain_block_multipliers(multipliers, c, ordered_multipliers, of);
        entrain_strip_convolve((const int8_t *)image + c, weights + c * 16, ordered_bias,
                               ordered_multipliers, scratch, (int8_t *)output + c,
                               vctp8q((uint32_t)(of.strips - c)), of);
    }
}

#endif
