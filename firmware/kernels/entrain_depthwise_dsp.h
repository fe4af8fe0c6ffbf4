/* One channel of a depthwise convolution with SMLAD: two neighbours times two weights at once. */
#ifndef ENTRAIN_DEPTHWISE_DSP_H
#define ENTRAIN_DEPTHWISE_DSP_H

/* Words of weights that a channel may need; a kernel that needs more is summed up one by one. */
#define ENTRAIN_MOST_WORDS 64

/* The largest offset of an instruction that loads two words. */
#define ENTRAIN_FARTHEST_PAIR 1020

typedef uint32_t entrain_word __attribute__((may_alias));

/* The weights of a kernel of three rows and columns: of each row 0 and 1 (early), 1 and 2 (late).
 */
struct entrain_three {
    uint32_t early[3];
    uint32_t late[3];
};

/* The sums of two neighbouring outputs, which see three rows of four numbers, `step` bytes apart.
 * In one piece on the device: the compiler would take halves of words apart, and keep what it has
 * loaded until it runs out of registers. */
ENTRAIN_INLINE void entrain_two_sums(const int16_t *corner, int32_t step, struct entrain_three w,
                                     int32_t bias, int32_t *left, int32_t *right) {
#if defined(ENTRAIN_SIMD32)
    uint32_t near;
    uint32_t far;
    __asm("ldrd   %[near], %[far], [%[corner]]\n\t"
          "smlad  %[l], %[near], %[e0], %[bias]\n\t"
          "smlatb %[r], %[near], %[e0], %[bias]\n\t"
          "smlabt %[l], %[far], %[l0], %[l]\n\t"
          "smlad  %[r], %[far], %[l0], %[r]\n\t"
          "ldrd   %[near], %[far], [%[corner], %[step]]\n\t"
          "smlad  %[l], %[near], %[e1], %[l]\n\t"
          "smlatb %[r], %[near], %[e1], %[r]\n\t"
          "smlabt %[l], %[far], %[l1], %[l]\n\t"
          "smlad  %[r], %[far], %[l1], %[r]\n\t"
          "ldrd   %[near], %[far], [%[corner], %[twice]]\n\t"
          "smlad  %[l], %[near], %[e2], %[l]\n\t"
          "smlatb %[r], %[near], %[e2], %[r]\n\t"
          "smlabt %[l], %[far], %[l2], %[l]\n\t"
          "smlad  %[r], %[far], %[l2], %[r]"
          : [l] "=&r"(*left), [r] "=&r"(*right), [near] "=&r"(near), [far] "=&r"(far)
          : [corner] "r"(corner), [step] "i"(step), [twice] "i"(2 * step), [bias] "r"(bias),
            [e0] "r"(w.early[0]), [e1] "r"(w.early[1]), [e2] "r"(w.early[2]), [l0] "r"(w.late[0]),
            [l1] "r"(w.late[1]), [l2] "r"(w.late[2])
          : "memory");
#else
    *left = bias;
    *right = bias;
    for (int32_t u = 0; u < 3; u++) {
        const entrain_word *row = (const entrain_word *)(corner + u * step / 2);
        *left = entrain_smlad(row[0], w.early[u], *left);
        *left = entrain_smlad(row[1] & 0xFFFFu, w.late[u] >> 16, *left);
        *right = entrain_smlad(row[0] >> 16, w.early[u] & 0xFFFFu, *right);
        *right = entrain_smlad(row[1], w.late[u], *right);
    }
#endif
}

/* The left one of them alone. */
ENTRAIN_INLINE int32_t entrain_one_sum(const int16_t *corner, int32_t step, struct entrain_three w,
                                       int32_t bias) {
#if defined(ENTRAIN_SIMD32)
    int32_t sum;
    uint32_t near;
    uint32_t far;
    __asm("ldrd   %[near], %[far], [%[corner]]\n\t"
          "smlad  %[sum], %[near], %[e0], %[bias]\n\t"
          "smlabt %[sum], %[far], %[l0], %[sum]\n\t"
          "ldrd   %[near], %[far], [%[corner], %[step]]\n\t"
          "smlad  %[sum], %[near], %[e1], %[sum]\n\t"
          "smlabt %[sum], %[far], %[l1], %[sum]\n\t"
          "ldrd   %[near], %[far], [%[corner], %[twice]]\n\t"
          "smlad  %[sum], %[near], %[e2], %[sum]\n\t"
          "smlabt %[sum], %[far], %[l2], %[sum]"
          : [sum] "=&r"(sum), [near] "=&r"(near), [far] "=&r"(far)
          : [corner] "r"(corner), [step] "i"(step), [twice] "i"(2 * step), [bias] "r"(bias),
            [e0] "r"(w.early[0]), [e1] "r"(w.early[1]), [e2] "r"(w.early[2]), [l0] "r"(w.late[0]),
            [l1] "r"(w.late[1]), [l2] "r"(w.late[2])
          : "memory");
    return sum;
#else
    int32_t right;
    int32_t left;
    entrain_two_sums(corner, step, w, bias, &left, &right);
    return left;
#endif
}

/* Of the same two outputs what one row adds; the weights of row `u`, early and late, lie in words.
 * Returns where the next row begins, `step` bytes further on. */
ENTRAIN_INLINE const int16_t *entrain_two_sums_more(const int16_t *row, int32_t step,
                                                    const uint32_t *words, int32_t u, int32_t *left,
                                                    int32_t *right) {
#if defined(ENTRAIN_SIMD32)
    uint32_t near;
    uint32_t far;
    uint32_t early;
    uint32_t late;
    __asm volatile("ldrd   %[near], %[far], [%[row]], %[step]\n\t"
                   "ldrd   %[early], %[late], [%[words], %[offset]]\n\t"
                   "smlad  %[l], %[near], %[early], %[l]\n\t"
                   "smlatb %[r], %[near], %[early], %[r]\n\t"
                   "smlabt %[l], %[far], %[late], %[l]\n\t"
                   "smlad  %[r], %[far], %[late], %[r]"
                   : [l] "+&r"(*left), [r] "+&r"(*right), [row] "+&r"(row), [near] "=&r"(near),
                     [far] "=&r"(far), [early] "=&r"(early), [late] "=&r"(late)
                   : [step] "i"(step), [words] "r"(words), [offset] "i"(8 * u)
                   : "memory");
#else
    const entrain_word *at = (const entrain_word *)row;
    const uint32_t early = words[2 * u];
    const uint32_t late = words[2 * u + 1];
    *left = entrain_smlad(at[1] & 0xFFFFu, late >> 16, entrain_smlad(at[0], early, *left));
    *right = entrain_smlad(at[1], late, entrain_smlad(at[0] >> 16, early & 0xFFFFu, *right));
    row += step / 2;
#endif
    return row;
}

/* The weights of kernel positions (u, v) and (u, v + 1) as one word; beyond the kernel lies 0. */
ENTRAIN_INLINE uint32_t entrain_weight_pair(const int8_t *weights, int32_t u, int32_t v,
                                            struct entrain_depthwise of) {
    const int32_t low = weights[entrain_weight_at(u, v, of)];
    const int32_t high = (v + 1 < of.window.columns) ? weights[entrain_weight_at(u, v + 1, of)] : 0;
    return ((uint32_t)high << 16) | ((uint32_t)low & 0xFFFFu);
}

/* Bytes from one row that the kernel sees to the next. */
ENTRAIN_INLINE int32_t entrain_row_step(struct entrain_depthwise of) {
    return 2 * of.window.row_dilation * entrain_plane_pitch(of);
}

/* Kernels of three rows and columns that move by one: two outputs share what they see. */
ENTRAIN_INLINE void entrain_plane_three(const int16_t *plane, const int8_t *weights, int32_t bias,
                                        int32_t multiplier, uint8_t *output, int32_t rows,
                                        struct entrain_depthwise of) {
    const int32_t pitch = entrain_plane_pitch(of);
    const int32_t step = entrain_row_step(of);
    struct entrain_three w;
#pragma GCC unroll 3
    for (int32_t u = 0; u < 3; u++) {
        w.early[u] = entrain_weight_pair(weights, u, 0, of);
        w.late[u] = entrain_weight_pair(weights, u, 1, of);
    }
    for (int32_t y = 0; y < rows; y++) {
        const int16_t *corner = plane + y * of.window.row_stride * pitch;
        uint8_t *to = output + y * of.output.row_bytes;
        for (int32_t x = 0; x + 1 < of.output.columns; x += 2) {
            int32_t left;
            int32_t right;
            entrain_two_sums(corner, step, w, bias, &left, &right);
            *to = entrain_depthwise_byte(left, multiplier, of);
            to += of.output.pixel_bytes;
            *to = entrain_depthwise_byte(right, multiplier, of);
            to += of.output.pixel_bytes;
            corner += 2;
        }
        if (of.output.columns % 2 == 1) {
            const int32_t last = entrain_one_sum(corner, step, w, bias);
            *to = entrain_depthwise_byte(last, multiplier, of);
        }
    }
}

/* Kernels of three columns that move by one, and of any other number of rows: the weights of all
 * rows do not fit the registers. */
ENTRAIN_INLINE void entrain_plane_three_columns(const int16_t *plane, const int8_t *weights,
                                                int32_t bias, int32_t multiplier, uint8_t *output,
                                                int32_t rows, struct entrain_depthwise of) {
    uint32_t words[ENTRAIN_MOST_WORDS];
#pragma GCC unroll 8
    for (int32_t u = 0; u < of.window.rows; u++) {
        words[2 * u] = entrain_weight_pair(weights, u, 0, of);
        words[2 * u + 1] = entrain_weight_pair(weights, u, 1, of);
    }
    for (int32_t y = 0; y < rows; y++) {
        const int16_t *corner = plane + y * of.window.row_stride * entrain_plane_pitch(of);
        uint8_t *to = output + y * of.output.row_bytes;
        for (int32_t x = 0; x < of.output.columns; x += 2) {
            const int16_t *row = corner;
            int32_t left = bias;
            int32_t right = bias;
#pragma GCC unroll 32
            for (int32_t u = 0; u < of.window.rows; u++) {
                row = entrain_two_sums_more(row, entrain_row_step(of), words, u, &left, &right);
            }
            *to = entrain_depthwise_byte(left, multiplier, of);
            to += of.output.pixel_bytes;
            if (x + 1 < of.output.columns) {
                *to = entrain_depthwise_byte(right, multiplier, of);
                to += of.output.pixel_bytes;
            }
            corner += 2;
        }
    }
}

/* Kernels whose columns are neighbours, moving by any stride. */
ENTRAIN_INLINE void entrain_plane_pairs(const int16_t *plane, const int8_t *weights, int32_t bias,
                                        int32_t multiplier, uint8_t *output, int32_t rows,
                                        struct entrain_depthwise of) {
    const int32_t pitch = entrain_plane_pitch(of);
    const int32_t pairs = (of.window.columns + 1) / 2;
    uint32_t words[ENTRAIN_MOST_WORDS];
#pragma GCC unroll 4
    for (int32_t u = 0; u < of.window.rows; u++) {
#pragma GCC unroll 4
        for (int32_t p = 0; p < pairs; p++) {
            words[u * pairs + p] = entrain_weight_pair(weights, u, 2 * p, of);
        }
    }
    for (int32_t y = 0; y < rows; y++) {
        const int16_t *corner = plane + y * of.window.row_stride * pitch;
        uint8_t *to = output + y * of.output.row_bytes;
        for (int32_t x = 0; x < of.output.columns; x++) {
            int32_t sum = bias;
#pragma GCC unroll 4
            for (int32_t u = 0; u < of.window.rows; u++) {
                const int16_t *row = corner + u * of.window.row_dilation * pitch;
#pragma GCC unroll 4
                for (int32_t p = 0; p < pairs; p++) {
                    sum = entrain_smlad(entrain_load_word(row + 2 * p), words[u * pairs + p], sum);
                }
            }
            *to = entrain_depthwise_byte(sum, multiplier, of);
            to += of.output.pixel_bytes;
            corner += of.window.column_stride;
        }
    }
}

ENTRAIN_INLINE void entrain_plane_convolve(const int16_t *plane, const int8_t *weights,
                                           int32_t bias, int32_t multiplier, uint8_t *output,
                                           int32_t rows, struct entrain_depthwise of) {
    const int32_t words = of.window.rows * ((of.window.columns + 1) / 2);
    const int32_t step = entrain_row_step(of);
    const bool has_three = of.window.columns == 3 && of.window.column_stride == 1 &&
                           of.window.column_dilation == 1 && words <= ENTRAIN_MOST_WORDS;
    if (has_three && of.window.rows == 3 && 2 * step <= ENTRAIN_FARTHEST_PAIR) {
        entrain_plane_three(plane, weights, bias, multiplier, output, rows, of);
    } else if (has_three && step <= ENTRAIN_FARTHEST_PAIR) {
        entrain_plane_three_columns(plane, weights, bias, multiplier, output, rows, of);
    } else if (of.window.column_dilation > 1 || of.window.columns == 1 ||
               words > ENTRAIN_MOST_WORDS || of.output.rows * of.output.columns < 4) {
        entrain_plane_one_by_one(plane, weights, bias, multiplier, output, rows, of);
    } else {
        entrain_plane_pairs(plane, weights, bias, multiplier, output, rows, of);
    }
}

#endif
