/* Rows of bytes drawn to length 1 and requantized: what a layer is normalized by.
 *
 *   moved[i]  = factor * (columns * x[i] - sum x), centred; else factor * (x[i] - zero_point)
 *   unit[i]   = round(moved[i] * 2^15 / sqrt(sum moved^2 + tiny))
 *   output[i] = clip((unit[i] * multiplier[i] + offset[i]) / 2^(32 + shift))
 *
 * The inverse root is that of entrain_roots.h, a mantissa of 16 bits and an exponent. With it, to
 * the bit what entrain_ratios.h and entrain_requantize compute: of a row's exponent one part raises
 * what is multiplied, the other the mantissa, so that the unit is the high word of their product.
 * The offset holds the bias, the zero point and one half. All numbers are literal constants where a
 * kernel is called, so the compiler specialises it.
 *
 * A row is summed before any of it is written, and a block of elements read before it is written:
 * the output may lie where the bytes lie, or before them. */
#ifndef ENTRAIN_LAYER_NORM_H
#define ENTRAIN_LAYER_NORM_H

#include <stdbool.h>
#include <stddef.h>

#include "entrain_arithmetic.h"
#include "entrain_isa.h"
#include "entrain_rescale.h"
#include "entrain_roots.h"

/* Of a unit vector's component, and the most by which a mantissa of 2^16 may be raised. */
#define ENTRAIN_UNIT_FRACTION 15
#define ENTRAIN_MANTISSA_RISE 14

struct entrain_layer_norm {
    int32_t rows;
    int32_t columns; /* of a row, at most 2^15 */
    bool centred;    /* by the row's mean; else by the zero point */
    int32_t zero_point;
    int32_t factor;
    int64_t tiny;
    bool is_unsigned;     /* the bytes */
    bool for_each_column; /* multipliers and offsets, from a table */
    int32_t multiplier;   /* else of all columns, with an offset in units of 2^32 */
    int32_t offset;
    int32_t shift; /* of the high word, 1 to 22 */
    int32_t low;
    int32_t high;
    bool to_unsigned; /* the output */
};

struct entrain_layer_norm_sums {
    int32_t sum;
    int32_t squares;
};

/* unit[i] = the high word of (x[i] * step + base) * root, to nearest. The product in brackets fits
 * 32 bits; its parts need not. */
struct entrain_layer_norm_row {
    int32_t step;
    int32_t base;
    int32_t root;
};

/* Where the next elements are. */
struct entrain_layer_norm_place {
    const uint8_t *bytes;
    const int32_t *table;
    uint8_t *output;
};

ENTRAIN_INLINE int32_t entrain_wrapped_product(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a * (uint32_t)b);
}

/* How a row is drawn to its length. */
ENTRAIN_INLINE struct entrain_layer_norm_row
entrain_layer_norm_row(struct entrain_layer_norm_sums of_row, const struct entrain_layer_norm *of) {
    const int64_t n = of->columns;
    const int64_t zero = of->zero_point;
    const int64_t sum = of_row.sum;
    const int64_t spread = of->centred ? n * of_row.squares - sum * sum
                                       : of_row.squares - 2 * zero * sum + n * zero * zero;
    const int64_t step = of->centred ? n * of->factor : of->factor;
    const int64_t squares = spread * (step * of->factor) + of->tiny;
    /* without any length nothing is left to be drawn out */
    struct entrain_layer_norm_row row = {(int32_t)step, 0, 0};
    row.base = -of->factor * (of->centred ? of_row.sum : of->zero_point);
    if (squares > 0) {
        const entrain_root root = entrain_reciprocal_root(squares);
        const int32_t rise = 32 + ENTRAIN_UNIT_FRACTION - root.exponent;
        const int32_t raised = (rise < ENTRAIN_MANTISSA_RISE) ? rise : ENTRAIN_MANTISSA_RISE;
        row.root = (int32_t)((uint32_t)root.mantissa << raised);
        row.step = (int32_t)((uint32_t)row.step << (rise - raised));
        row.base = (int32_t)((uint32_t)row.base << (rise - raised));
    }
    return row;
}

#if defined(ENTRAIN_MVE)
#include "entrain_layer_norm_mve.h"
#else
#include "entrain_layer_norm_scalar.h"
#endif

#define ENTRAIN_LAYER_NORM_BLOCKS 4 /* in a round of the loop */
#define ENTRAIN_LAYER_NORM_ROUND  (ENTRAIN_LAYER_NORM_BLOCK * ENTRAIN_LAYER_NORM_BLOCKS)

/* The next row. */
ENTRAIN_INLINE void entrain_layer_norm_write(struct entrain_layer_norm_place *at,
                                             struct entrain_layer_norm_row row,
                                             const struct entrain_layer_norm *of) {
    for (int32_t round = 0; round < of->columns / ENTRAIN_LAYER_NORM_ROUND; round++) {
#pragma GCC unroll 4
        for (int32_t block = 0; block < ENTRAIN_LAYER_NORM_BLOCKS; block++) {
            entrain_layer_norm_block(at, ENTRAIN_LAYER_NORM_BLOCK, row, of);
        }
    }
    const int32_t left = of->columns % ENTRAIN_LAYER_NORM_ROUND;
#pragma GCC unroll 4
    for (int32_t first = 0; first < left; first += ENTRAIN_LAYER_NORM_BLOCK) {
        const int32_t block = left - first;
        entrain_layer_norm_block(
            at, (block < ENTRAIN_LAYER_NORM_BLOCK) ? block : ENTRAIN_LAYER_NORM_BLOCK, row, of);
    }
}

/* The table has a row of multipliers, one of offsets and one of their low words; NULL if all
 * columns share one. */
ENTRAIN_INLINE void entrain_layer_norm(const void *bytes, const int32_t *table, void *output,
                                       const struct entrain_layer_norm *of) {
    struct entrain_layer_norm_place at = {.bytes = bytes, .output = output};
    for (int32_t row = 0; row < of->rows; row++) {
        at.table = table;
        const struct entrain_layer_norm_sums sums = entrain_layer_norm_sums(at.bytes, of);
        entrain_layer_norm_write(&at, entrain_layer_norm_row(sums, of), of);
    }
}

#endif
