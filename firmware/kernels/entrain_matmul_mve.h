/* The matrix product with Helium: up to three rows and four columns at a time. */
#ifndef ENTRAIN_MATMUL_MVE_H
#define ENTRAIN_MATMUL_MVE_H

#include "entrain_matmul_rescale_mve.h"
#include "entrain_matmul_sums_mve.h"

/* All rows of a block, four columns or fewer. */
ENTRAIN_INLINE void entrain_matmul_four_columns(struct entrain_matmul_operands at,
                                                const struct entrain_matmul_held *held,
                                                int32_t columns, int32_t rows,
                                                struct entrain_matmul of) {
    const struct entrain_matmul_sums sums = entrain_matmul_sum_four(at, held, columns, rows, of);
    const int32x4_t bias = entrain_load_four(at.bias, columns);
    const struct entrain_matmul_multipliers by =
        entrain_load_multipliers(at.multipliers, columns, of);
#pragma GCC unroll 4
    for (int32_t row = 0; row < rows; row++) {
        const struct entrain_matmul_operands to = entrain_matmul_rows_from(at, row, of);
        const int32x4_t own = (of.bias_stride == 0) ? bias : entrain_load_four(to.bias, columns);
        entrain_matmul_store_four(vaddq_s32(sums.row[row], own), by, to, columns, of);
    }
}

/* Rows of input as rows of signed bytes in the scratch. */
ENTRAIN_INLINE const uint8_t *entrain_matmul_signed(const uint8_t *input, uint8_t *scratch,
                                                    int32_t rows, struct entrain_matmul of) {
    for (int32_t row = 0; row < rows; row++) {
        const int8_t *bytes = (const int8_t *)input + row * of.input_stride;
        int8_t *to = (int8_t *)scratch + row * entrain_matmul_vectors(of) * ENTRAIN_LANES;
        for (int32_t k = 0; k < of.depth; k += ENTRAIN_LANES) {
            vstrbq_s8(to + k, entrain_matmul_input(&bytes, of.depth - k, of));
        }
    }
    return scratch;
}

/* A block of rows, all columns. */
ENTRAIN_INLINE void entrain_matmul_block(struct entrain_matmul_operands at, void *scratch,
                                         int32_t rows, struct entrain_matmul of) {
    const struct entrain_matmul_held held = entrain_matmul_hold(at.input, rows, of);
    const int32_t whole = of.columns / 4 * 4;
    if ((of.input_is_unsigned || of.is_in_place) && !entrain_matmul_holds(rows, of)) {
        at.input = entrain_matmul_signed(at.input, scratch, rows, of);
        of.input_stride = entrain_matmul_vectors(of) * ENTRAIN_LANES;
    }
    for (int32_t column = 0; column < whole; column += 4) {
        entrain_matmul_four_columns(entrain_matmul_columns_from(at, column, of), &held, 4, rows,
                                    of);
    }
    if (whole < of.columns) {
        entrain_matmul_four_columns(entrain_matmul_columns_from(at, whole, of), &held,
                                    of.columns - whole, rows, of);
    }
}

#endif
