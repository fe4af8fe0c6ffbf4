/* Weights of four bits, two to a byte in flash, as the bytes that the matrix product reads.
 *
 * A word holds eight weights that follow each other, each plus 8: four in the low halves of its
 * bytes, four in the high ones. A row begins with a word. */
#ifndef ENTRAIN_NIBBLES_H
#define ENTRAIN_NIBBLES_H

#include "entrain_isa.h"

/* Bytes from 0 to 15, each less 8; none borrows from its neighbour. */
ENTRAIN_INLINE uint32_t entrain_less_eight(uint32_t bytes) {
#if defined(ENTRAIN_SIMD32)
    return (uint32_t)__ssub8((int8x4_t)bytes, (int8x4_t)0x08080808u);
#else
    return (bytes + 0x78787878u) ^ 0x80808080u;
#endif
}

/* So many words, and with vectors up to three more. */
ENTRAIN_INLINE void entrain_unpack_words(const int32_t *packed, uint32_t *unpacked, int32_t words) {
#if defined(ENTRAIN_MVE)
    for (int32_t i = 0; i < words; i += 4) {
        const uint8x16_t bytes = vreinterpretq_u8_s32(vldrwq_s32(packed + i));
        const uint8x16_t low = vandq_u8(bytes, vdupq_n_u8(15));
        const uint32x4x2_t both = {{vreinterpretq_u32_u8(vsubq_n_u8(low, 8)),
                                    vreinterpretq_u32_u8(vsubq_n_u8(vshrq_n_u8(bytes, 4), 8))}};
        vst2q_u32(unpacked + 2 * i, both);
    }
#else
    uint32_t low = 0x0F0F0F0Fu;
    __asm("" : "+r"(low)); /* in a register, which may be shifted on its way */
    const int32_t *const end = packed + words;
#pragma GCC unroll 4
    while (packed < end) {
        const uint32_t word = (uint32_t)*packed++;
        unpacked[0] = entrain_less_eight(low & word);
        unpacked[1] = entrain_less_eight(low & (word >> 4));
        unpacked += 2;
    }
#endif
}

/* Rows of weights, each of `pitch` bytes, a multiple of 4, when unpacked.
 *
 * packed    up to 12 bytes behind the last row are read, and do not matter
 * unpacked  aligned to 4 bytes; up to 28 bytes behind the last row are written */
ENTRAIN_INLINE void entrain_unpack_rows(const int32_t *packed, void *unpacked, int32_t rows,
                                        int32_t pitch) {
    uint32_t *to = unpacked;
    if (pitch % 8 == 0) {
        entrain_unpack_words(packed, to, rows * pitch / 8);
        return;
    }
    for (int32_t row = 0; row < rows; row++) { /* in order: a row's filling is overwritten */
        entrain_unpack_words(packed + row * (pitch + 4) / 8, to + row * pitch / 4, (pitch + 4) / 8);
    }
}

#endif
