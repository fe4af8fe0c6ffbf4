/* Normalized rows, element by element; sums with DSP by words of four bytes. */
#ifndef ENTRAIN_LAYER_NORM_SCALAR_H
#define ENTRAIN_LAYER_NORM_SCALAR_H

/* Elements at a time: what registers hold besides the row's numbers. */
#define ENTRAIN_LAYER_NORM_BLOCK 4

ENTRAIN_INLINE void entrain_layer_norm_sum_byte(struct entrain_layer_norm_sums *sums,
                                                const uint8_t *byte,
                                                const struct entrain_layer_norm *of) {
    const int32_t x = entrain_byte(byte, of->is_unsigned);
    sums->sum += x;
    sums->squares += x * x;
}

/* Four bytes, or fewer at the end of a row. */
ENTRAIN_INLINE void entrain_layer_norm_sum_block(struct entrain_layer_norm_sums *sums,
                                                 const uint8_t *bytes, int32_t count,
                                                 const struct entrain_layer_norm *of) {
#if defined(ENTRAIN_DSP)
    if (count == ENTRAIN_LAYER_NORM_BLOCK) {
        const uint32_t ones = 0x00010001u;
        const uint32_t word = entrain_load_word(bytes);
        const uint32_t even = of->is_unsigned ? entrain_uxtb16(word) : entrain_sxtb16(word);
        const uint32_t odd =
            of->is_unsigned ? entrain_uxtb16_ror8(word) : entrain_sxtb16_ror8(word);
        sums->sum = entrain_smlad(odd, ones, entrain_smlad(even, ones, sums->sum));
        sums->squares = entrain_smlad(odd, odd, entrain_smlad(even, even, sums->squares));
        return;
    }
#endif
#pragma GCC unroll 4
    for (int32_t i = 0; i < count; i++) {
        entrain_layer_norm_sum_byte(sums, bytes + i, of);
    }
}

ENTRAIN_INLINE struct entrain_layer_norm_sums
entrain_layer_norm_sums(const uint8_t *bytes, const struct entrain_layer_norm *of) {
    struct entrain_layer_norm_sums sums = {0, 0};
    const int32_t left = of->columns % ENTRAIN_LAYER_NORM_BLOCK;
#pragma GCC unroll 8
    for (int32_t i = 0; i < of->columns - left; i += ENTRAIN_LAYER_NORM_BLOCK) {
        entrain_layer_norm_sum_block(&sums, bytes + i, ENTRAIN_LAYER_NORM_BLOCK, of);
    }
    entrain_layer_norm_sum_block(&sums, bytes + of->columns - left, left, of);
    return sums;
}

/* The high word of unit * multiplier + offset. */
ENTRAIN_INLINE int32_t entrain_layer_norm_total(int32_t unit, const int32_t *table,
                                                const struct entrain_layer_norm *of) {
    if (!of->for_each_column) {
        return entrain_add_high_product(of->offset, unit, of->multiplier);
    }
    const uint32_t high = (uint32_t)table[of->columns];
    const uint32_t low = (uint32_t)table[2 * of->columns];
    const int64_t offset = (int64_t)(((uint64_t)high << 32) | low);
    return (int32_t)(((int64_t)unit * table[0] + offset) >> 32);
}

/* The next `count` elements, a block at most. */
ENTRAIN_INLINE void entrain_layer_norm_block(struct entrain_layer_norm_place *at, int32_t count,
                                             struct entrain_layer_norm_row row,
                                             const struct entrain_layer_norm *of) {
    int32_t units[ENTRAIN_LAYER_NORM_BLOCK];
#pragma GCC unroll 4
    for (int32_t i = 0; i < count; i++) {
        const int32_t x = entrain_byte(at->bytes + i, of->is_unsigned);
        const uint32_t moved = (uint32_t)entrain_wrapped_product(x, row.step) + (uint32_t)row.base;
        units[i] = entrain_rounded_high_product((int32_t)moved, row.root);
    }
#pragma GCC unroll 4
    for (int32_t i = 0; i < count; i++) {
        const int32_t *table = of->for_each_column ? at->table + i : NULL;
        const int32_t total = entrain_layer_norm_total(units[i], table, of);
        at->output[i] =
            (uint8_t)entrain_clipped_byte(total, of->shift, of->low, of->high, of->to_unsigned);
        /* the compiler would gather the bytes of a word */
        ENTRAIN_BARRIER();
    }
    at->bytes += count;
    at->output += count;
    at->table += of->for_each_column ? count : 0;
}

#endif
