/* Bytes filled in and copied, as many at once as the core can; barriers keep the loops. */
#ifndef ENTRAIN_BYTES_H
#define ENTRAIN_BYTES_H

#include "entrain_isa.h"

ENTRAIN_INLINE void entrain_fill_bytes(uint8_t *bytes, int32_t count, int32_t byte) {
    const uint32_t word = (uint32_t)(byte & 0xFF) * 0x01010101u;
    const int32_t whole = count / 4 * 4;
    for (int32_t i = 0; i < whole; i += 4) {
        __builtin_memcpy(bytes + i, &word, sizeof word);
        ENTRAIN_BARRIER();
    }
    for (int32_t i = whole; i < count; i++) {
        bytes[i] = (uint8_t)byte;
        ENTRAIN_BARRIER();
    }
}

ENTRAIN_INLINE void entrain_copy_word(uint8_t *to, const uint8_t *from) {
    const uint32_t word = entrain_load_word(from);
    __builtin_memcpy(to, &word, sizeof word);
}

/* In order: both may overlap if `to` lies before `from`. */
ENTRAIN_INLINE void entrain_copy_bytes(uint8_t *to, const uint8_t *from, int32_t count) {
    int32_t i = 0;
#if defined(ENTRAIN_MVE)
    for (; count - i > 4; i += 16) {
        const mve_pred16_t lanes = vctp8q((uint32_t)(count - i));
        vstrbq_p_u8(to + i, vldrbq_z_u8(from + i, lanes), lanes);
    }
#endif
    for (; i + 16 <= count; i += 16) {
        entrain_copy_word(to + i, from + i);
        entrain_copy_word(to + i + 4, from + i + 4);
        entrain_copy_word(to + i + 8, from + i + 8);
        entrain_copy_word(to + i + 12, from + i + 12);
        ENTRAIN_BARRIER();
    }
    for (; i + 4 <= count; i += 4) {
        entrain_copy_word(to + i, from + i);
    }
    for (; i < count; i++) {
        to[i] = from[i];
    }
}

#endif
