/* Sums of bytes, element by element, requantized: residual sums, differences, a constant added.
 *
 *   output[i] = clip((constant[i] + sum_k addend_k[i] * multiplier_k) / 2^shift)
 *
 * The constant holds the zero points, the bias and one half. The lowering proves that the total
 * fits 32 bits for any bytes; then it fits without the addends that are still to come, since a byte
 * may be 0. All numbers are literal constants where a kernel is called, so the compiler specialises
 * it.
 *
 * A block of elements is read before it is written: the output may lie where an addend lies. */
#ifndef ENTRAIN_ADD_H
#define ENTRAIN_ADD_H

#include <stdbool.h>
#include <stddef.h>

#include "entrain_arithmetic.h"
#include "entrain_isa.h"
#include "entrain_rescale.h"

#define ENTRAIN_MOST_ADDENDS 8

struct entrain_addend {
    int32_t multiplier;
    bool is_unsigned;
};

struct entrain_add {
    int32_t rows;
    int32_t columns; /* of a row, for which there are constants; all rows share them */
    int32_t addends; /* how many, at least 1 */
    struct entrain_addend addend[ENTRAIN_MOST_ADDENDS];
    int32_t constant; /* of each element, unless there are constants */
    int32_t shift;    /* 1 to 24 */
    int32_t low;
    int32_t high;
    bool is_unsigned; /* the output */
};

/* Where the next elements are. */
struct entrain_add_place {
    const uint8_t *addend[ENTRAIN_MOST_ADDENDS];
    const int32_t *constants; /* NULL if one is shared by all elements */
    int32_t constant;
    uint8_t *output;
};

#if defined(ENTRAIN_MVE)
#include "entrain_add_mve.h"
#else

/* Elements at a time: what registers hold besides pointers and multipliers. */
#define ENTRAIN_ADD_BLOCK 4

/* The next `count` elements, a block at most. */
ENTRAIN_INLINE void entrain_add_block(struct entrain_add_place *at, int32_t count,
                                      const struct entrain_add *of) {
    int32_t totals[ENTRAIN_ADD_BLOCK];
#pragma GCC unroll 4
    for (int32_t i = 0; i < count; i++) {
        totals[i] = (at->constants == NULL) ? at->constant : at->constants[i];
    }
#pragma GCC unroll 8
    for (int32_t k = 0; k < of->addends; k++) {
#pragma GCC unroll 4
        for (int32_t i = 0; i < count; i++) {
            totals[i] += entrain_byte(at->addend[k] + i, of->addend[k].is_unsigned) *
                         of->addend[k].multiplier;
        }
        at->addend[k] += count;
    }
#pragma GCC unroll 4
    for (int32_t i = 0; i < count; i++) {
        at->output[i] =
            (uint8_t)entrain_clipped_byte(totals[i], of->shift, of->low, of->high, of->is_unsigned);
        /* the compiler would gather the bytes of a word, and begin with more blocks than it has
         * registers for */
        ENTRAIN_BARRIER();
    }
    at->output += count;
    at->constants += (at->constants == NULL) ? 0 : count;
}

#endif

#define ENTRAIN_ADD_BLOCKS 4 /* in a round of the loop */
#define ENTRAIN_ADD_ROUND  (ENTRAIN_ADD_BLOCK * ENTRAIN_ADD_BLOCKS)

/* The next elements, as many as share the constants. */
ENTRAIN_INLINE void entrain_add_row(struct entrain_add_place *at, const struct entrain_add *of) {
    for (int32_t round = 0; round < of->columns / ENTRAIN_ADD_ROUND; round++) {
#pragma GCC unroll 4
        for (int32_t block = 0; block < ENTRAIN_ADD_BLOCKS; block++) {
            entrain_add_block(at, ENTRAIN_ADD_BLOCK, of);
        }
    }
    const int32_t left = of->columns % ENTRAIN_ADD_ROUND;
#pragma GCC unroll 4
    for (int32_t first = 0; first < left; first += ENTRAIN_ADD_BLOCK) {
        const int32_t block = left - first;
        entrain_add_block(at, (block < ENTRAIN_ADD_BLOCK) ? block : ENTRAIN_ADD_BLOCK, of);
    }
}

ENTRAIN_INLINE void entrain_add(const void *const *addends, const int32_t *constants, void *output,
                                const struct entrain_add *of) {
    struct entrain_add_place at = {
        .constants = constants, .constant = of->constant, .output = output};
#pragma GCC unroll 8
    for (int32_t k = 0; k < of->addends; k++) {
        at.addend[k] = addends[k];
    }
    /* in a register: the compiler would add a literal in pieces, after each multiplication */
    __asm("" : "+r"(at.constant));
    for (int32_t row = 0; row < of->rows; row++) {
        entrain_add_row(&at, of);
        at.constants = constants;
    }
}

#endif
