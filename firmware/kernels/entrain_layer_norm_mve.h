/* Normalized rows with Helium: sums of sixteen bytes an instruction, then four elements a vector.
 */
#ifndef ENTRAIN_LAYER_NORM_MVE_H
#define ENTRAIN_LAYER_NORM_MVE_H

#include "entrain_lanes_mve.h"

/* Two vectors, so that none is needed right after it was made. */
#define ENTRAIN_LAYER_NORM_BLOCK   8
#define ENTRAIN_LAYER_NORM_VECTORS (ENTRAIN_LAYER_NORM_BLOCK / 4)
#define ENTRAIN_LAYER_NORM_BYTES   16

/* Adds sixteen bytes; those behind a row's end are 0. */
ENTRAIN_INLINE void entrain_layer_norm_sum_bytes(struct entrain_layer_norm_sums *sums,
                                                 uint8x16_t bytes,
                                                 const struct entrain_layer_norm *of) {
    if (of->is_unsigned) {
        sums->sum = (int32_t)vaddvaq_u8((uint32_t)sums->sum, bytes);
        sums->squares = (int32_t)vmladavaq_u8((uint32_t)sums->squares, bytes, bytes);
    } else {
        const int8x16_t numbers = vreinterpretq_s8_u8(bytes);
        sums->sum = vaddvaq_s8(sums->sum, numbers);
        sums->squares = vmladavaq_s8(sums->squares, numbers, numbers);
    }
}

ENTRAIN_INLINE struct entrain_layer_norm_sums
entrain_layer_norm_sums(const uint8_t *bytes, const struct entrain_layer_norm *of) {
    struct entrain_layer_norm_sums sums = {0, 0};
    const int32_t left = of->columns % ENTRAIN_LAYER_NORM_BYTES;
#pragma GCC unroll 4
    for (int32_t i = 0; i < of->columns - left; i += ENTRAIN_LAYER_NORM_BYTES) {
        entrain_layer_norm_sum_bytes(&sums, vldrbq_u8(bytes + i), of);
    }
    if (left > 0) {
        const uint8x16_t last = vldrbq_z_u8(bytes + of->columns - left, vctp8q((uint32_t)left));
        entrain_layer_norm_sum_bytes(&sums, last, of);
    }
    return sums;
}

/* The high words of units * multipliers + offsets. With a table the low words carry. */
ENTRAIN_INLINE int32x4_t entrain_layer_norm_totals(int32x4_t units, const int32_t *table,
                                                   int32_t count,
                                                   const struct entrain_layer_norm *of) {
    if (!of->for_each_column) {
        return vaddq_n_s32(vmulhq_s32(units, vdupq_n_s32(of->multiplier)), of->offset);
    }
    /* one vector after the other: the registers hold the constants of no more */
    __asm volatile("" : : : "memory");
    const int32x4_t multipliers = entrain_word_lanes(table, count);
    const int32x4_t offsets = entrain_word_lanes(table + of->columns, count);
    const int32x4_t fractions = entrain_word_lanes(table + 2 * of->columns, count);
    const int32x4_t high = vaddq_s32(vmulhq_s32(units, multipliers), offsets);
    /* half the sum of the low words has their carry at its top */
    const uint32x4_t low = vreinterpretq_u32_s32(vmulq_s32(units, multipliers));
    const uint32x4_t carry = vshrq_n_u32(vhaddq_u32(low, vreinterpretq_u32_s32(fractions)), 31);
    return vaddq_s32(high, vreinterpretq_s32_u32(carry));
}

/* The next `count` elements, a block at most. */
ENTRAIN_INLINE void entrain_layer_norm_block(struct entrain_layer_norm_place *at, int32_t count,
                                             struct entrain_layer_norm_row row,
                                             const struct entrain_layer_norm *of) {
    int32x4_t units[ENTRAIN_LAYER_NORM_VECTORS];
    /* the compiler would keep the addresses of all blocks' constants, on the stack */
    __asm("" : "+r"(at->table));
#pragma GCC unroll 2
    for (int32_t i = 0; i < count; i += 4) {
        units[i / 4] = entrain_next_lanes(&at->bytes, count - i, of->is_unsigned);
    }
#pragma GCC unroll 2
    for (int32_t i = 0; i < count; i += 4) {
        const int32x4_t moved = vmlasq_n_s32(units[i / 4], vdupq_n_s32(row.step), row.base);
        units[i / 4] = vrmulhq_s32(moved, vdupq_n_s32(row.root));
    }
#pragma GCC unroll 2
    for (int32_t i = 0; i < count; i += 4) {
        const int32_t *table = of->for_each_column ? at->table + i : NULL;
        const int32x4_t totals = entrain_layer_norm_totals(units[i / 4], table, count - i, of);
        units[i / 4] = entrain_clipped_lanes(totals, of->shift, of->low, of->high, of->to_unsigned);
    }
#pragma GCC unroll 2
    for (int32_t i = 0; i < count; i += 4) {
        entrain_store_lanes(&at->output, units[i / 4], count - i);
    }
    at->table += of->for_each_column ? count : 0;
}

#endif
