/* The depthwise convolution with vectors, one channel at a time: for few channels, any kernel and
 * any order of channels.
 *
 * What a band of output rows sees of a channel is gathered as a plane of bytes, one column behind
 * the other. What an output sees are then bytes at the same places from its corner on: one
 * instruction loads sixteen of them, another one multiplies them with the weights and sums up.
 * Places beyond 255 need 16 bits each, so that only eight are loaded at once. */
#ifndef ENTRAIN_DEPTHWISE_PATCHES_H
#define ENTRAIN_DEPTHWISE_PATCHES_H

#define ENTRAIN_FARTHEST_BYTE 255

/* Outputs that are rescaled together. */
#define ENTRAIN_PATCHES 4

/* Bytes from one column of the plane to the next. */
ENTRAIN_INLINE int32_t entrain_patch_pitch(struct entrain_depthwise of) {
    return of.is_turned ? 1 : entrain_seen_rows(of.window, of.vector_band);
}

/* Bytes of the plane. */
ENTRAIN_INLINE int32_t entrain_patch_plane(struct entrain_depthwise of) {
    return entrain_seen_rows(of.window, of.vector_band) *
           entrain_seen_columns(of.window, of.output.columns);
}

/* Where the plane begins in the scratch: behind the places. */
ENTRAIN_INLINE int32_t entrain_patch_table(struct entrain_depthwise of) {
    return 2 * entrain_weights_of(of);
}

/* The kernel's positions as they lie in the plane, which may be turned. */
struct entrain_patch {
    int32_t pitch;
    int32_t lanes;   /* positions at a time: 16, or 8 with places of 16 bits */
    int32_t vectors; /* of positions */
    int32_t step;    /* bytes from one output to the next */
};

ENTRAIN_INLINE struct entrain_patch entrain_patch_of(struct entrain_depthwise of) {
    const int32_t pitch = entrain_patch_pitch(of);
    const int32_t reach = (of.window.columns - 1) * of.window.column_dilation * pitch +
                          (of.window.rows - 1) * of.window.row_dilation;
    const int32_t lanes = (reach > ENTRAIN_FARTHEST_BYTE) ? 8 : 16;
    return (struct entrain_patch){pitch, lanes, entrain_weights_of(of) / lanes,
                                  of.window.column_stride * pitch};
}

/* The place of each weight; those beyond the kernel are 0, and read the corner. */
ENTRAIN_INLINE void entrain_patch_places(uint8_t *table, struct entrain_depthwise of) {
    const struct entrain_patch patch = entrain_patch_of(of);
    entrain_fill_bytes(table, entrain_patch_table(of), 0);
    for (int32_t u = 0; u < of.window.rows; u++) {
        for (int32_t v = 0; v < of.window.columns; v++) {
            const int32_t place =
                u * of.window.row_dilation + v * of.window.column_dilation * patch.pitch;
            const int32_t weight = entrain_weight_at(u, v, of);
            if (patch.lanes == 16) {
                table[weight] = (uint8_t)place;
            } else {
                ((uint16_t *)(void *)table)[weight] = (uint16_t)place;
            }
        }
    }
}

/* Places and weights of some positions. */
struct entrain_patch_vector {
    uint8x16_t places;
    int8x16_t weights;
};

ENTRAIN_INLINE struct entrain_patch_vector
entrain_patch_vector(const uint8_t *table, const int8_t *weights, int32_t number, int32_t lanes) {
    const int8_t *from = weights + lanes * number;
    return (struct entrain_patch_vector){vldrbq_u8(table + 16 * number),
                                         lanes == 16 ? vldrbq_s8(from)
                                                     : vreinterpretq_s8_s16(vldrbq_s16(from))};
}

#define ENTRAIN_PATCH_SUM(number, to, adds)                                                        \
    ".if %c[count] > " number "\n\t"                                                               \
    ".if %c[lanes] == 16\n\t"                                                                      \
    "vldrb.u8 q0, [%[at], %q[places]]\n\t"                                                         \
    "vmladav" adds ".s8 %[" to "], q0, %q[weights]\n\t"                                            \
    ".else\n\t"                                                                                    \
    "vldrb.s16 q0, [%[at], %q[places]]\n\t"                                                        \
    "vmladav" adds ".s16 %[" to "], q0, %q[weights]\n\t"                                           \
    ".endif\n\t"                                                                                   \
    "add %[at], %[at], %[step]\n\t"                                                                \
    ".endif\n\t"
#define ENTRAIN_PATCH_SUMS(adds)                                                                   \
    ENTRAIN_PATCH_SUM("0", "s0", adds)                                                             \
    ENTRAIN_PATCH_SUM("1", "s1", adds)                                                             \
    ENTRAIN_PATCH_SUM("2", "s2", adds) ENTRAIN_PATCH_SUM("3", "s3", adds)

/* Sums of up to four outputs. */
struct entrain_patch_sums {
    int32_t sum[ENTRAIN_PATCHES];
};

/* The products of some positions: instead of what the sums are, or added to them. */
ENTRAIN_INLINE void entrain_patch_sum(const int8_t *corner, struct entrain_patch_vector by,
                                      struct entrain_patch_sums *sums, bool adds, int32_t count,
                                      struct entrain_patch patch) {
    int32_t *const s = sums->sum;
    if (adds) {
        __asm volatile(ENTRAIN_PATCH_SUMS("a")
                       : [at] "+&r"(corner), [s0] "+&Te"(s[0]), [s1] "+&Te"(s[1]),
                         [s2] "+&Te"(s[2]), [s3] "+&Te"(s[3])
                       : [places] "w"(by.places), [weights] "w"(by.weights), [count] "i"(count),
                         [lanes] "i"(patch.lanes), [step] "r"(patch.step)
                       : "q0", "memory");
    } else {
        __asm volatile(ENTRAIN_PATCH_SUMS("")
                       : [at] "+&r"(corner), [s0] "=&Te"(s[0]), [s1] "=&Te"(s[1]),
                         [s2] "=&Te"(s[2]), [s3] "=&Te"(s[3])
                       : [places] "w"(by.places), [weights] "w"(by.weights), [count] "i"(count),
                         [lanes] "i"(patch.lanes), [step] "r"(patch.step)
                       : "q0", "memory");
    }
}

/* A channel: its weights, bias and multiplier. */
struct entrain_patch_channel {
    const int8_t *weights;
    int32_t bias;
    int32_t multiplier;
};

/* Up to four outputs of a row; the first positions are held in registers. */
ENTRAIN_INLINE void entrain_patch_outputs(const int8_t *corner, const uint8_t *table,
                                          struct entrain_patch_vector first,
                                          struct entrain_patch_channel channel, uint8_t *output,
                                          int32_t count, struct entrain_depthwise of) {
    const struct entrain_patch patch = entrain_patch_of(of);
    struct entrain_patch_sums sums;
    entrain_patch_sum(corner, first, &sums, false, count, patch);
    for (int32_t i = 1; i < patch.vectors; i++) {
        entrain_patch_sum(corner, entrain_patch_vector(table, channel.weights, i, patch.lanes),
                          &sums, true, count, patch);
    }
    const int32x4_t lanes =
        entrain_odd_lanes(entrain_even_lanes(sums.sum[0], sums.sum[2]), sums.sum[1], sums.sum[3]);
    const int32x4_t biased = vaddq_n_s32(lanes, channel.bias);
    const struct entrain_matmul_operands to = {.output = output};
    const struct entrain_matmul_multipliers by = {.all = channel.multiplier};
    struct entrain_matmul product = {.output_gap = of.output.pixel_bytes - 1,
                                     .rescale = of.rescale};
    product.rescale.for_each_channel = false;
    entrain_matmul_store_four((of.rise > 0) ? vshlq_n_s32(biased, of.rise) : biased, by, to, count,
                              product);
}

/* One channel of so many output rows. */
ENTRAIN_INLINE void entrain_patch_convolve(const int8_t *plane, const uint8_t *table,
                                           struct entrain_patch_channel channel, uint8_t *output,
                                           int32_t rows, struct entrain_depthwise of) {
    const struct entrain_patch patch = entrain_patch_of(of);
    const struct entrain_patch_vector first =
        entrain_patch_vector(table, channel.weights, 0, patch.lanes);
    const int32_t whole = of.output.columns / ENTRAIN_PATCHES * ENTRAIN_PATCHES;
    for (int32_t y = 0; y < rows; y++) {
        const int8_t *corner = plane + y * of.window.row_stride;
        uint8_t *to = output + y * of.output.row_bytes;
        for (int32_t x = 0; x < whole; x += ENTRAIN_PATCHES) {
            entrain_patch_outputs(corner, table, first, channel, to, ENTRAIN_PATCHES, of);
            corner += ENTRAIN_PATCHES * patch.step;
            to += ENTRAIN_PATCHES * of.output.pixel_bytes;
        }
        if (whole < of.output.columns) {
            entrain_patch_outputs(corner, table, first, channel, to, of.output.columns - whole, of);
        }
    }
}

/* Copies so many signed bytes; all have their own distances. */
ENTRAIN_INLINE void entrain_patch_copy(const int8_t *from, int32_t from_step, int8_t *to,
                                       int32_t to_step, int32_t count,
                                       struct entrain_depthwise of) {
    const uint16x8_t number = vidupq_n_u16(0, 1);
    const uint16x8_t sources = vmulq_n_u16(number, (uint16_t)from_step);
    const uint16x8_t places = vmulq_n_u16(number, (uint16_t)to_step);
    for (int32_t i = 0; i < count; i += 8) {
        const mve_pred16_t lanes = vctp16q((uint32_t)(count - i));
        const int16x8_t bytes = vldrbq_gather_offset_z_s16(from + i * from_step, sources, lanes);
        vstrbq_scatter_offset_p_s16(to + i * to_step, places,
                                    of.is_unsigned ? veorq_s16(bytes, vdupq_n_s16(0x80)) : bytes,
                                    lanes);
    }
}

/* What lies outside the image, as a signed byte. */
ENTRAIN_INLINE int32_t entrain_patch_outside(struct entrain_depthwise of) {
    return of.zero_point - (of.is_unsigned ? ENTRAIN_UNSIGNED_OFFSET : 0);
}

/* Writes so many rows of one channel from input row `start` on. Columns outside the image stay as
 * they are, and so do rows if all output rows are one band. */
ENTRAIN_INLINE void entrain_patch_gather(const int8_t *channel, int8_t *plane, int32_t start,
                                         int32_t rows, struct entrain_depthwise of) {
    const int32_t pitch = entrain_seen_rows(of.window, of.vector_band);
    const int32_t columns = entrain_seen_columns(of.window, of.output.columns);
    const struct entrain_span across = entrain_span_of(-of.window.left, columns, of.image.columns);
    const struct entrain_span down = entrain_span_of(start, rows, of.image.rows);
    const int8_t *from =
        channel + down.first * of.image.row_bytes + across.first * of.image.pixel_bytes;
    int8_t *const to = plane + down.before + across.before * pitch;
    for (int32_t column = 0; column < ((of.vector_band < of.output.rows) ? columns : 0); column++) {
        uint8_t *const rest = (uint8_t *)plane + column * pitch;
        entrain_fill_bytes(rest, down.before, entrain_patch_outside(of));
        entrain_fill_bytes(rest + rows - down.after, down.after, entrain_patch_outside(of));
    }
    if (entrain_is_line(of)) {
        entrain_patch_copy(from, of.image.row_bytes, to, 1, down.count, of);
        return;
    }
    for (int32_t row = 0; row < down.count; row++) {
        entrain_patch_copy(from + row * of.image.row_bytes, of.image.pixel_bytes, to + row, pitch,
                           across.count, of);
    }
}

/* The rows of the plane that the next band sees too, to the beginning of each column. */
ENTRAIN_INLINE void entrain_patch_keep(int8_t *plane, int32_t kept, struct entrain_depthwise of) {
    const int32_t pitch = entrain_seen_rows(of.window, of.vector_band);
    const int32_t columns = (kept > 0) ? entrain_seen_columns(of.window, of.output.columns) : 0;
    for (int32_t column = 0; column < columns; column++) {
        uint8_t *const to = (uint8_t *)plane + column * pitch;
        entrain_copy_bytes(to, to + pitch - kept, kept);
    }
}

/* The channels from `first` on.
 *
 * scratch  the places of the kernel's positions, then the plane */
ENTRAIN_INLINE void entrain_depthwise_patches(const void *image, const int8_t *weights,
                                              const int32_t *bias, const int32_t *multipliers,
                                              void *scratch, void *output, int32_t first,
                                              struct entrain_depthwise of) {
    uint8_t *const table = scratch;
    int8_t *const plane = (int8_t *)scratch + entrain_patch_table(of);
    entrain_patch_places(table, entrain_is_line(of) ? entrain_depthwise_turned(of, 1) : of);
    entrain_fill_bytes((uint8_t *)plane, entrain_patch_plane(of), entrain_patch_outside(of));
    for (int32_t c = first; c < of.image.channels; c++) {
        const struct entrain_patch_channel channel = {
            weights + c * entrain_weights_of(of), bias[c],
            multipliers[of.rescale.for_each_channel ? c : 0]};
        for (int32_t y = 0; y < of.output.rows; y += of.vector_band) {
            const int32_t left = of.output.rows - y;
            const int32_t rows = (left < of.vector_band) ? left : of.vector_band;
            const int32_t start = y * of.window.row_stride - of.window.top;
            const int32_t kept = (y > 0) ? entrain_kept_rows(of.window) : 0;
            entrain_patch_keep(plane, kept, of);
            entrain_patch_gather((const int8_t *)image + c * of.image.channel_bytes, plane + kept,
                                 start + kept, entrain_seen_rows(of.window, rows) - kept, of);
            uint8_t *const to =
                (uint8_t *)output + y * of.output.row_bytes + c * of.output.channel_bytes;
            if (entrain_is_line(of)) {
                entrain_patch_convolve(plane, table, channel, to, 1,
                                       entrain_depthwise_turned(of, rows));
            } else {
                entrain_patch_convolve(plane, table, channel, to, rows, of);
            }
        }
    }
}

#endif
