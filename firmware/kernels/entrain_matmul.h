/* Matrix product with weights, from bytes to bytes: fully connected layers, and convolutions whose
 * kernel is one pixel or whose pixels have been gathered as rows.
 *
 *   output[m][n] = clip(zero_point + round((bias[n] + sum_k input[m][k] * weights[n][k]) * scale))
 *
 * Weights lie row by row, one row an output channel, each filled up with 0 to whole words; up to 12
 * bytes behind the last row are read, and do not matter. Those of four bits are unpacked before. An
 * unsigned input counts as if 128 had been taken off; that and its zero point are folded into the
 * bias by the lowering, which also proves that no sum leaves 32 bits. All numbers are literal
 * constants where a kernel is called, so the compiler specialises it. */
#ifndef ENTRAIN_MATMUL_H
#define ENTRAIN_MATMUL_H

#include <stdbool.h>
#include <stddef.h>

#include "entrain_arithmetic.h"
#include "entrain_bytes.h"
#include "entrain_isa.h"
#include "entrain_nibbles.h"
#include "entrain_rescale.h"

/* A tensor of the output's shape that joins before rounding:
 *
 *   clip(zero_point + round((sum * multipliers[n] + residual * multiplier + constant) / 2^shift))
 *
 * Its zero point is in the constant; the shift is at least 2. */
struct entrain_residual {
    int32_t stride; /* bytes from one row to the next */
    bool is_unsigned;
    int32_t multiplier;
    int64_t constant;
};

struct entrain_matmul {
    int32_t rows;    /* of input and output */
    int32_t depth;   /* products in a sum */
    int32_t columns; /* of the output: rows of weights */
    int32_t input_stride;
    int32_t output_stride;
    int32_t output_gap;  /* bytes between one column of the output and the next: 0 but for images
                          * whose channels lie apart, which no residual joins */
    int32_t bias_stride; /* numbers from one row's bias to the next; 0 if all rows share one */
    bool input_is_unsigned;
    int32_t block_rows; /* of the output, summed up at the same time */
    int32_t block_columns;
    struct entrain_rescale rescale;
    /* Whether the output takes the input's bytes; no row of it reaches the next one's. The two
     * bools lie apart, or gcc would load both at once, and all of this from memory. */
    bool is_in_place;
    struct entrain_residual residual; /* nothing if the residual's pointer is NULL */
};

/* Where everything lies for one row and those behind it. */
struct entrain_matmul_operands {
    const uint8_t *input;
    const int8_t *weights;
    const int32_t *bias;
    const int32_t *multipliers;
    const uint8_t *residual;
    uint8_t *output;
};

/* Bytes from one row of weights to the next. */
ENTRAIN_INLINE int32_t entrain_matmul_pitch(struct entrain_matmul of) {
    return (of.depth + 3) / 4 * 4;
}

/* The operands of the rows from `row` on. */
ENTRAIN_INLINE struct entrain_matmul_operands
entrain_matmul_rows_from(struct entrain_matmul_operands at, int32_t row, struct entrain_matmul of) {
    at.input += row * of.input_stride;
    at.output += row * of.output_stride;
    at.bias += row * of.bias_stride;
    at.residual += (at.residual == NULL) ? 0 : row * of.residual.stride;
    return at;
}

/* The operands of the columns from `column` on. */
ENTRAIN_INLINE struct entrain_matmul_operands
entrain_matmul_columns_from(struct entrain_matmul_operands at, int32_t column,
                            struct entrain_matmul of) {
    at.weights += column * entrain_matmul_pitch(of);
    at.bias += column;
    at.multipliers += of.rescale.for_each_channel ? column : 0;
    at.residual += (at.residual == NULL) ? 0 : column;
    at.output += column * (1 + of.output_gap);
    return at;
}

/* Whether the zero point joins the constant of totals below 2^61. */
ENTRAIN_INLINE bool entrain_matmul_joins(struct entrain_matmul of) {
    return of.rescale.shift <= 50;
}

/* What is added to every 64-bit total: the constant, one half, and the zero point if it joins. */
ENTRAIN_INLINE int64_t entrain_matmul_constant(struct entrain_matmul of) {
    const int64_t one = (int64_t)1 << of.rescale.shift;
    return of.residual.constant + one / 2 +
           (entrain_matmul_joins(of) ? of.rescale.zero_point * one : 0);
}

/* total + a * b. */
ENTRAIN_INLINE int64_t entrain_add_product(int64_t total, int32_t a, int32_t b) {
#if defined(ENTRAIN_SIMD32)
    __asm("smlal %Q0, %R0, %1, %2" : "+r"(total) : "r"(a), "r"(b));
    return total;
#else
    return total + (int64_t)a * b;
#endif
}

/* A 64-bit total to 8 bits. The last bits are shifted out by what saturates. */
ENTRAIN_INLINE uint8_t entrain_matmul_wide(int32_t sum, int32_t multiplier, const uint8_t *residual,
                                           struct entrain_matmul of) {
    const struct entrain_rescale to = of.rescale;
    int64_t total = entrain_add_product(entrain_matmul_constant(of), sum, multiplier);
    if (residual != NULL) {
        const int32_t byte = entrain_byte(residual, of.residual.is_unsigned);
        total = entrain_add_product(total, byte, of.residual.multiplier);
    }
    const int32_t early = (to.shift > 32) ? 32 : to.shift - 1;
    const int32_t steps = (int32_t)(total >> early);
    const bool is_whole =
        to.low == (to.is_unsigned ? 0 : -128) && to.high == (to.is_unsigned ? 255 : 127);
    if (entrain_matmul_joins(of) && is_whole) {
        return (uint8_t)entrain_saturated_byte(steps, to.shift - early, to.is_unsigned);
    }
    const int32_t zero_point = entrain_matmul_joins(of) ? 0 : to.zero_point;
    return (uint8_t)entrain_clip((steps >> (to.shift - early)) + zero_point, to.low, to.high);
}

/* One element of the output. */
ENTRAIN_INLINE uint8_t entrain_matmul_element(int32_t sum, int32_t multiplier,
                                              const uint8_t *residual, struct entrain_matmul of) {
    if (residual != NULL || of.rescale.shift < 33) {
        return entrain_matmul_wide(sum, multiplier, residual, of);
    }
    return (uint8_t)entrain_rescaled(sum, multiplier, of.rescale);
}

#if defined(ENTRAIN_MVE)
#include "entrain_matmul_mve.h"
#elif defined(ENTRAIN_DSP)
#include "entrain_matmul_dsp.h"
#else
#include "entrain_matmul_scalar.h"
#endif

/* The whole product.
 *
 * The scratch is aligned to 8 bytes. DSP needs twice as many bytes as block_rows rows of weights,
 * vectors as many as block_rows rows of input, each filled up to 16, if the input is unsigned or
 * overwritten, other cores as many as block_rows rows of weights if it is overwritten. The residual
 * is NULL, or what joins (of.residual); its bytes may become those of the output in the same
 * places. */
ENTRAIN_INLINE void entrain_matmul(const void *input, const int8_t *weights, const int32_t *bias,
                                   const int32_t *multipliers, const void *residual, void *scratch,
                                   void *output, struct entrain_matmul of) {
    const struct entrain_matmul_operands all = {input,       weights,  bias,
                                                multipliers, residual, output};
    const int32_t whole = of.rows / of.block_rows * of.block_rows;
    for (int32_t row = 0; row < whole; row += of.block_rows) {
        entrain_matmul_block(entrain_matmul_rows_from(all, row, of), scratch, of.block_rows, of);
    }
    if (whole < of.rows) {
        entrain_matmul_block(entrain_matmul_rows_from(all, whole, of), scratch, of.rows - whole,
                             of);
    }
}

#endif
