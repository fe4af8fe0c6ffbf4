/* The matrix product with SMLAD.
 *
 * A block of input rows is widened to 16 bits once, word by word of all its rows, in the order in
 * which they are read again for every row of weights; LDM then loads two rows at once. The rows'
 * sums, the two halves of a word of weights, four words of input and two pointers are just the
 * registers that there are: so the sums of a column are one statement of assembly. */
#ifndef ENTRAIN_MATMUL_DSP_H
#define ENTRAIN_MATMUL_DSP_H

#define ENTRAIN_MOST_BLOCK_ROWS 6
#define ENTRAIN_ROW_COLUMNS     4 /* at a time, of a row without a partner */

/* Four weights as they meet widened input: weights 0 and 2, and 1 and 3. */
struct entrain_quad {
    uint32_t even;
    uint32_t odd;
};

ENTRAIN_INLINE struct entrain_quad entrain_widened(uint32_t bytes) {
    return (struct entrain_quad){entrain_sxtb16(bytes), entrain_sxtb16_ror8(bytes)};
}

/* Up to four bytes, then zeros. */
ENTRAIN_INLINE uint32_t entrain_load_bytes(const uint8_t *bytes, int32_t count) {
    uint32_t word = 0;
    for (int32_t i = 0; i < count; i++) {
        word |= (uint32_t)bytes[i] << (8 * i);
    }
    return word;
}

/* The widened input of a block of rows. */
struct entrain_widened_rows {
    const uint32_t *first;
    const uint32_t *end;
};

/* One column of a block: the sums of its rows with one row of weights. */
struct entrain_matmul_column {
    int32_t sums[ENTRAIN_MOST_BLOCK_ROWS];
};

#if defined(ENTRAIN_SIMD32)

/* The next four weights. */
#define ENTRAIN_NEXT_WEIGHTS                                                                       \
    "ldr    %[odd], [%[w]], #4\n\t"                                                                \
    "sxtb16 %[even], %[odd]\n\t"                                                                   \
    "sxtb16 %[odd], %[odd], ror #8\n\t"

/* Four products each for the sums a and b of two rows, which begin with a0 and b0. */
#define ENTRAIN_TWO_ROWS(a, b, a0, b0)                                                             \
    "ldm    %[x]!, {r0, r1, r2, r3}\n\t"                                                           \
    "smlad  %[" a "], r0, %[even], %[" a0 "]\n\t"                                                  \
    "smlad  %[" a "], r1, %[odd], %[" a "]\n\t"                                                    \
    "smlad  %[" b "], r2, %[even], %[" b0 "]\n\t"                                                  \
    "smlad  %[" b "], r3, %[odd], %[" b "]\n\t"

/* Adding, and beginning with what the last sum holds. */
#define ENTRAIN_ADD_2   ENTRAIN_TWO_ROWS("s0", "s1", "s0", "s1")
#define ENTRAIN_ADD_4   ENTRAIN_ADD_2 ENTRAIN_TWO_ROWS("s2", "s3", "s2", "s3")
#define ENTRAIN_ADD_6   ENTRAIN_ADD_4 ENTRAIN_TWO_ROWS("s4", "s5", "s4", "s5")
#define ENTRAIN_BEGIN_2 ENTRAIN_TWO_ROWS("s0", "s1", "s1", "s1")
#define ENTRAIN_BEGIN_4                                                                            \
    ENTRAIN_TWO_ROWS("s0", "s1", "s3", "s3") ENTRAIN_TWO_ROWS("s2", "s3", "s3", "s3")
#define ENTRAIN_BEGIN_6                                                                            \
    ENTRAIN_TWO_ROWS("s0", "s1", "s5", "s5")                                                       \
    ENTRAIN_TWO_ROWS("s2", "s3", "s5", "s5") ENTRAIN_TWO_ROWS("s4", "s5", "s5", "s5")

/* Another four products if there are more than `count` of the few ones. Not by .rept: the compiler
 * must see how long the code may become, to keep its constants within reach. */
#define ENTRAIN_FEW(count, add) ".if %c[few] > " count "\n\t" ENTRAIN_NEXT_WEIGHTS add ".endif\n\t"
#define ENTRAIN_UP_TO_SEVEN(add)                                                                   \
    ENTRAIN_FEW("0", add)                                                                          \
    ENTRAIN_FEW("1", add)                                                                          \
    ENTRAIN_FEW("2", add)                                                                          \
    ENTRAIN_FEW("3", add) ENTRAIN_FEW("4", add) ENTRAIN_FEW("5", add) ENTRAIN_FEW("6", add)
#define ENTRAIN_TWICE(add) ENTRAIN_NEXT_WEIGHTS add ENTRAIN_NEXT_WEIGHTS add
#define ENTRAIN_EIGHT(add)                                                                         \
    ENTRAIN_TWICE(add) ENTRAIN_TWICE(add) ENTRAIN_TWICE(add) ENTRAIN_TWICE(add)

/* The first four products, a few more, and loops of eight. */
#define ENTRAIN_LOOP ".if %c[loops]\n1:\n\t"
#define ENTRAIN_AGAIN                                                                              \
    ".if %c[loops] > 1\n\tldr r0, %[end]\n\tcmp %[x], r0\n\tbne 1b\n\t.endif\n\t.endif"
#define ENTRAIN_COLUMN(begin, add)                                                                 \
    ENTRAIN_NEXT_WEIGHTS begin ENTRAIN_UP_TO_SEVEN(add)                                            \
    ENTRAIN_LOOP ENTRAIN_EIGHT(add) ENTRAIN_AGAIN

/* Words of weights behind the first one. */
ENTRAIN_INLINE int32_t entrain_column_loops(struct entrain_matmul of) {
    return (entrain_matmul_pitch(of) / 4 - 1) / 8;
}

ENTRAIN_INLINE int32_t entrain_column_few(struct entrain_matmul of) {
    return (entrain_matmul_pitch(of) / 4 - 1) % 8;
}

/* bias + the sums of 2, 4 or 6 rows with one row of weights; the pointer moves to the next. */
ENTRAIN_INLINE struct entrain_matmul_column
entrain_matmul_sum_column(const struct entrain_widened_rows *block, const int8_t **weights,
                          int32_t bias, int32_t rows, struct entrain_matmul of) {
    struct entrain_matmul_column column;
    int32_t *const s = column.sums;
    const uint32_t *x = block->first;
    const int8_t *w = *weights;
    uint32_t even;
    uint32_t odd;
    s[rows - 1] = bias;
    if (rows == 2) {
        __asm volatile(ENTRAIN_COLUMN(ENTRAIN_BEGIN_2, ENTRAIN_ADD_2)
                       : [s0] "=&r"(s[0]), [s1] "+&r"(s[1]), [x] "+&r"(x), [w] "+&r"(w),
                         [even] "=&r"(even), [odd] "=&r"(odd)
                       : [few] "i"(entrain_column_few(of)), [loops] "i"(entrain_column_loops(of)),
                         [end] "m"(block->end)
                       : "r0", "r1", "r2", "r3", "cc", "memory");
    } else if (rows == 4) {
        __asm volatile(ENTRAIN_COLUMN(ENTRAIN_BEGIN_4, ENTRAIN_ADD_4)
                       : [s0] "=&r"(s[0]), [s1] "=&r"(s[1]), [s2] "=&r"(s[2]), [s3] "+&r"(s[3]),
                         [x] "+&r"(x), [w] "+&r"(w), [even] "=&r"(even), [odd] "=&r"(odd)
                       : [few] "i"(entrain_column_few(of)), [loops] "i"(entrain_column_loops(of)),
                         [end] "m"(block->end)
                       : "r0", "r1", "r2", "r3", "cc", "memory");
    } else {
        __asm volatile(ENTRAIN_COLUMN(ENTRAIN_BEGIN_6, ENTRAIN_ADD_6)
                       : [s0] "=&r"(s[0]), [s1] "=&r"(s[1]), [s2] "=&r"(s[2]), [s3] "=&r"(s[3]),
                         [s4] "=&r"(s[4]), [s5] "+&r"(s[5]), [x] "+&r"(x), [w] "+&r"(w),
                         [even] "=&r"(even), [odd] "=&r"(odd)
                       : [few] "i"(entrain_column_few(of)), [loops] "i"(entrain_column_loops(of)),
                         [end] "m"(block->end)
                       : "r0", "r1", "r2", "r3", "cc", "memory");
    }
    *weights = w;
    return column;
}

/* Two words, behind which the pointer then stands. */
ENTRAIN_INLINE struct entrain_quad entrain_next_quad(const uint32_t **words) {
    struct entrain_quad quad;
    __asm volatile("ldrd %0, %1, [%2], #8"
                   : "=r"(quad.even), "=r"(quad.odd), "+r"(*words)
                   :
                   : "memory");
    return quad;
}

/* Stores two words, and returns the place `step` words further on. */
ENTRAIN_INLINE uint32_t *entrain_store_quad(uint32_t *words, struct entrain_quad quad,
                                            int32_t step) {
    __asm volatile("strd %1, %2, [%0], %3"
                   : "+r"(words)
                   : "r"(quad.even), "r"(quad.odd), "i"(4 * step)
                   : "memory");
    return words;
}

/* sum + four products with one word of weights. In one piece, because the compiler would take many
 * words apart at once and run out of registers. */
ENTRAIN_INLINE int32_t entrain_add_four(const int8_t *weights, struct entrain_quad input,
                                        int32_t sum) {
    uint32_t even;
    uint32_t odd;
    __asm volatile("ldr    %2, %5\n\t"
                   "sxtb16 %1, %2\n\t"
                   "sxtb16 %2, %2, ror #8\n\t"
                   "smlad  %0, %3, %1, %0\n\t"
                   "smlad  %0, %4, %2, %0"
                   : "+r"(sum), "=&r"(even), "=&r"(odd)
                   : "r"(input.even), "r"(input.odd), "m"(*(const int8_t(*)[4])weights));
    return sum;
}

#else

ENTRAIN_INLINE struct entrain_quad entrain_next_quad(const uint32_t **words) {
    const struct entrain_quad quad = {(*words)[0], (*words)[1]};
    *words += 2;
    return quad;
}

ENTRAIN_INLINE uint32_t *entrain_store_quad(uint32_t *words, struct entrain_quad quad,
                                            int32_t step) {
    words[0] = quad.even;
    words[1] = quad.odd;
    return words + step;
}

ENTRAIN_INLINE int32_t entrain_four_products(struct entrain_quad input, struct entrain_quad by,
                                             int32_t sum) {
    return entrain_smlad(input.odd, by.odd, entrain_smlad(input.even, by.even, sum));
}

ENTRAIN_INLINE int32_t entrain_add_four(const int8_t *weights, struct entrain_quad input,
                                        int32_t sum) {
    return entrain_four_products(input, entrain_widened(entrain_load_word(weights)), sum);
}

ENTRAIN_INLINE struct entrain_matmul_column
entrain_matmul_sum_column(const struct entrain_widened_rows *block, const int8_t **weights,
                          int32_t bias, int32_t rows, struct entrain_matmul of) {
    struct entrain_matmul_column column;
    const uint32_t *x = block->first;
    for (int32_t row = 0; row < rows; row++) {
        column.sums[row] = bias;
    }
    while (x < block->end) {
        for (int32_t row = 0; row < rows; row++) {
            column.sums[row] = entrain_add_four(*weights, entrain_next_quad(&x), column.sums[row]);
        }
        *weights += 4;
    }
    (void)of;
    return column;
}

#endif

/* One row of input into its place among the `rows` of a block. */
ENTRAIN_INLINE void entrain_matmul_widen(const uint8_t *input, uint32_t *words, int32_t rows,
                                         struct entrain_matmul of) {
    const uint32_t flipped = of.input_is_unsigned ? 0x80808080u : 0;
    int32_t k = 0;
#pragma GCC unroll 4
    for (; k + 4 <= of.depth; k += 4) {
        const struct entrain_quad quad = entrain_widened(entrain_load_word(input + k) ^ flipped);
        words = entrain_store_quad(words, quad, 2 * rows);
    }
    if (k < of.depth) {
        const uint32_t rest = entrain_load_bytes(input + k, of.depth - k);
        (void)entrain_store_quad(words, entrain_widened(rest ^ flipped), 2 * rows);
    }
}

/* An even number of rows, column by column. */
ENTRAIN_INLINE void entrain_matmul_pairs(struct entrain_matmul_operands at, const uint32_t *words,
                                         int32_t rows, struct entrain_matmul of) {
    const struct entrain_widened_rows block = {words, words + rows * entrain_matmul_pitch(of) / 2};
    const bool shares = of.bias_stride == 0;
    const int8_t *weights = at.weights;
    for (int32_t column = 0; column < of.columns; column++) {
        const struct entrain_matmul_column own =
            entrain_matmul_sum_column(&block, &weights, shares ? *at.bias : 0, rows, of);
        const int32_t multiplier = *at.multipliers;
#pragma GCC unroll 8
        for (int32_t row = 0; row < rows; row++) {
            const struct entrain_matmul_operands to = entrain_matmul_rows_from(at, row, of);
            const int32_t sum = own.sums[row] + (shares ? 0 : *to.bias);
            *to.output = entrain_matmul_element(sum, multiplier, to.residual, of);
        }
        at = entrain_matmul_columns_from(at, 1, of);
    }
}

/* One row, several columns at a time. */
ENTRAIN_INLINE void entrain_matmul_row(struct entrain_matmul_operands at, const uint32_t *row,
                                       int32_t columns, struct entrain_matmul of) {
    const int32_t pitch = entrain_matmul_pitch(of);
    int32_t sums[ENTRAIN_ROW_COLUMNS];
#pragma GCC unroll 4
    for (int32_t c = 0; c < columns; c++) {
        sums[c] = at.bias[c];
    }
#pragma GCC unroll 8
    for (int32_t k = 0; k < pitch; k += 4) {
        const struct entrain_quad input = entrain_next_quad(&row);
#pragma GCC unroll 4
        for (int32_t c = 0; c < columns; c++) {
            sums[c] = entrain_add_four(at.weights + c * pitch + k, input, sums[c]);
        }
    }
#pragma GCC unroll 4
    for (int32_t c = 0; c < columns; c++) {
        const struct entrain_matmul_operands to = entrain_matmul_columns_from(at, c, of);
        *to.output = entrain_matmul_element(sums[c], *to.multipliers, to.residual, of);
    }
}

/* A block of rows, all columns; `scratch` holds their widened input. */
ENTRAIN_INLINE void entrain_matmul_block(struct entrain_matmul_operands at, void *scratch,
                                         int32_t rows, struct entrain_matmul of) {
    uint32_t *words = scratch;
    const int32_t even = rows / 2 * 2;
    if (even > 0) {
        for (int32_t row = 0; row < even; row++) {
            entrain_matmul_widen(at.input + row * of.input_stride, words + 2 * row, even, of);
        }
        entrain_matmul_pairs(at, words, even, of);
    }
    if (even < rows) {
        at = entrain_matmul_rows_from(at, even, of);
        entrain_matmul_widen(at.input, words, 1, of);
        const int32_t whole = of.columns / ENTRAIN_ROW_COLUMNS * ENTRAIN_ROW_COLUMNS;
        for (int32_t column = 0; column < whole; column += ENTRAIN_ROW_COLUMNS) {
            entrain_matmul_row(entrain_matmul_columns_from(at, column, of), words,
                               ENTRAIN_ROW_COLUMNS, of);
        }
        if (whole < of.columns) {
            entrain_matmul_row(entrain_matmul_columns_from(at, whole, of), words,
                               of.columns - whole, of);
        }
    }
}

#endif
