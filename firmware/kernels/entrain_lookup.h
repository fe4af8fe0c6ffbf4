/* Any function of a byte, by its table: output[i] = table[bytes[i]].
 *
 * An entry for each byte as an unsigned number, whatever the type of either. The output may lie
 * where the bytes lie, or before them: a block is read before it is written. */
#ifndef ENTRAIN_LOOKUP_H
#define ENTRAIN_LOOKUP_H

#include "entrain_isa.h"

#if defined(ENTRAIN_MVE)

#define ENTRAIN_LOOKUP_BLOCK 16

/* The next 16 elements. By assembly the pointers move on with loads and stores; the compiler would
 * compute each address. */
ENTRAIN_INLINE void entrain_lookup_block(const uint8_t **bytes, const uint8_t *table,
                                         uint8_t **output) {
    uint8x16_t places;
    __asm volatile("vldrb.8 %q0, [%1], #16" : "=w"(places), "+l"(*bytes) : : "memory");
    const uint8x16_t found = vldrbq_gather_offset_u8(table, places);
    __asm volatile("vstrb.8 %q1, [%0], #16" : "+l"(*output) : "w"(found) : "memory");
}

/* The last elements, fewer than a block. */
ENTRAIN_INLINE void entrain_lookup_rest(const uint8_t *bytes, const uint8_t *table, uint8_t *output,
                                        int32_t count) {
    const mve_pred16_t some = vctp8q((uint32_t)count);
    const uint8x16_t places = vldrbq_z_u8(bytes, some);
    vstrbq_p_u8(output, vldrbq_gather_offset_z_u8(table, places, some), some);
}

#else

#define ENTRAIN_LOOKUP_BLOCK 4

/* The next four elements. */
ENTRAIN_INLINE void entrain_lookup_block(const uint8_t **bytes, const uint8_t *table,
                                         uint8_t **output) {
    uint32_t found[ENTRAIN_LOOKUP_BLOCK];
#pragma GCC unroll 4
    for (int32_t i = 0; i < ENTRAIN_LOOKUP_BLOCK; i++) {
        found[i] = (*bytes)[i];
    }
#pragma GCC unroll 4
    for (int32_t i = 0; i < ENTRAIN_LOOKUP_BLOCK; i++) {
        found[i] = table[found[i]];
    }
#pragma GCC unroll 4
    for (int32_t i = 0; i < ENTRAIN_LOOKUP_BLOCK; i++) {
        (*output)[i] = (uint8_t)found[i];
        /* the compiler would gather the bytes of a word */
        ENTRAIN_BARRIER();
    }
    *bytes += ENTRAIN_LOOKUP_BLOCK;
    *output += ENTRAIN_LOOKUP_BLOCK;
}

/* The last elements, fewer than a block. */
ENTRAIN_INLINE void entrain_lookup_rest(const uint8_t *bytes, const uint8_t *table, uint8_t *output,
                                        int32_t count) {
#pragma GCC unroll 4
    for (int32_t i = 0; i < count; i++) {
        output[i] = table[bytes[i]];
    }
}

#endif

#define ENTRAIN_LOOKUP_BLOCKS 8 /* in a round of the loop */
#define ENTRAIN_LOOKUP_ROUND  (ENTRAIN_LOOKUP_BLOCK * ENTRAIN_LOOKUP_BLOCKS)

ENTRAIN_INLINE void entrain_lookup(const void *bytes, const void *table, void *output,
                                   int32_t count) {
    const uint8_t *from = bytes;
    uint8_t *to = output;
    for (int32_t round = 0; round < count / ENTRAIN_LOOKUP_ROUND; round++) {
#pragma GCC unroll 8
        for (int32_t block = 0; block < ENTRAIN_LOOKUP_BLOCKS; block++) {
            entrain_lookup_block(&from, table, &to);
        }
    }
    const int32_t left = count % ENTRAIN_LOOKUP_ROUND;
#pragma GCC unroll 8
    for (int32_t block = 0; block < left / ENTRAIN_LOOKUP_BLOCK; block++) {
        entrain_lookup_block(&from, table, &to);
    }
    if (left % ENTRAIN_LOOKUP_BLOCK > 0) {
        entrain_lookup_rest(from, table, to, left % ENTRAIN_LOOKUP_BLOCK);
    }
}

#endif
