/* The matrix product for any core: a block of rows and columns summed up in registers. */
#ifndef ENTRAIN_MATMUL_SCALAR_H
#define ENTRAIN_MATMUL_SCALAR_H

#define ENTRAIN_MOST_BLOCK_ROWS    4
#define ENTRAIN_MOST_BLOCK_COLUMNS 4

/* Some rows and columns. */
ENTRAIN_INLINE void entrain_matmul_tile(struct entrain_matmul_operands at, int32_t rows,
                                        int32_t columns, struct entrain_matmul of) {
    const int32_t pitch = entrain_matmul_pitch(of);
    int32_t sums[ENTRAIN_MOST_BLOCK_ROWS][ENTRAIN_MOST_BLOCK_COLUMNS];
#pragma GCC unroll 4
    for (int32_t row = 0; row < rows; row++) {
#pragma GCC unroll 4
        for (int32_t c = 0; c < columns; c++) {
            sums[row][c] = at.bias[row * of.bias_stride + c];
        }
    }
#pragma GCC unroll 4
    for (int32_t k = 0; k < of.depth; k++) {
        int32_t x[ENTRAIN_MOST_BLOCK_ROWS];
#pragma GCC unroll 4
        for (int32_t row = 0; row < rows; row++) {
            const uint8_t byte = at.input[row * of.input_stride + k];
            x[row] = of.input_is_unsigned ? (int32_t)byte - ENTRAIN_UNSIGNED_OFFSET : (int8_t)byte;
        }
#pragma GCC unroll 4
        for (int32_t c = 0; c < columns; c++) {
            const int32_t weight = at.weights[c * pitch + k];
#pragma GCC unroll 4
            for (int32_t row = 0; row < rows; row++) {
                sums[row][c] += x[row] * weight;
            }
        }
    }
#pragma GCC unroll 4
    for (int32_t row = 0; row < rows; row++) {
#pragma GCC unroll 4
        for (int32_t c = 0; c < columns; c++) {
            const struct entrain_matmul_operands to =
                entrain_matmul_columns_from(entrain_matmul_rows_from(at, row, of), c, of);
            *to.output = entrain_matmul_element(sums[row][c], *to.multipliers, to.residual, of);
        }
    }
}

/* Some rows, all columns. */
ENTRAIN_INLINE void entrain_matmul_band(struct entrain_matmul_operands at, int32_t rows,
                                        struct entrain_matmul of) {
    const int32_t whole = of.columns / of.block_columns * of.block_columns;
    for (int32_t column = 0; column < whole; column += of.block_columns) {
        entrain_matmul_tile(entrain_matmul_columns_from(at, column, of), rows, of.block_columns,
                            of);
    }
    if (whole < of.columns) {
        entrain_matmul_tile(entrain_matmul_columns_from(at, whole, of), rows, of.columns - whole,
                            of);
    }
}

/* Rows of input in the scratch. */
ENTRAIN_INLINE const uint8_t *entrain_matmul_copied(const uint8_t *input, uint8_t *scratch,
                                                    int32_t rows, struct entrain_matmul of) {
    for (int32_t row = 0; row < rows; row++) {
        entrain_copy_bytes(scratch + row * entrain_matmul_pitch(of), input + row * of.input_stride,
                           of.depth);
    }
    return scratch;
}

/* A block of rows, all columns. */
ENTRAIN_INLINE void entrain_matmul_block(struct entrain_matmul_operands at, void *scratch,
                                         int32_t rows, struct entrain_matmul of) {
    if (of.is_in_place) {
        at.input = entrain_matmul_copied(at.input, scratch, rows, of);
        of.input_stride = entrain_matmul_pitch(of);
    }
#if defined(__thumb__) && !defined(__thumb2__)
    /* Eight registers do not hold the sums of several rows: one after the other. */
    for (int32_t row = 0; row < rows; row++) {
        entrain_matmul_band(entrain_matmul_rows_from(at, row, of), 1, of);
    }
#else
    entrain_matmul_band(at, rows, of);
#endif
}

#endif
