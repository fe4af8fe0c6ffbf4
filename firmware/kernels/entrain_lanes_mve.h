/* Bytes in the lanes of Helium's vectors: read, clipped and written four at a time. */
#ifndef ENTRAIN_LANES_MVE_H
#define ENTRAIN_LANES_MVE_H

#include <stdbool.h>

#include "entrain_isa.h"

/* The next four bytes, or the first `count` of them, each in a lane. By assembly the pointer moves
 * on with the load; the compiler would compute each address. */
ENTRAIN_INLINE int32x4_t entrain_next_lanes(const uint8_t **bytes, int32_t count,
                                            bool is_unsigned) {
    int32x4_t lanes;
    if (count < 4) {
        const mve_pred16_t some = vctp32q((uint32_t)count);
        lanes = is_unsigned ? vreinterpretq_s32_u32(vldrbq_z_u32(*bytes, some))
                            : vldrbq_z_s32((const int8_t *)*bytes, some);
        *bytes += count;
    } else if (is_unsigned) {
        __asm volatile("vldrb.u32 %q0, [%1], #4" : "=w"(lanes), "+l"(*bytes) : : "memory");
    } else {
        __asm volatile("vldrb.s32 %q0, [%1], #4" : "=w"(lanes), "+l"(*bytes) : : "memory");
    }
    return lanes;
}

/* Four words, or the first `count` of them. */
ENTRAIN_INLINE int32x4_t entrain_word_lanes(const int32_t *words, int32_t count) {
    return (count < 4) ? vldrwq_z_s32(words, vctp32q((uint32_t)count)) : vldrwq_s32(words);
}

/* Totals / 2^shift at the lowest byte of each lane, clipped; 1 <= shift <= 24. At the top of its
 * lane a byte is saturated by the shift that brings it there. */
ENTRAIN_INLINE int32x4_t entrain_clipped_lanes(int32x4_t totals, int32_t shift, int32_t low,
                                               int32_t high, bool is_unsigned) {
    const int32_t rise = 24 - shift;
    const int32_t least = is_unsigned ? 0 : INT8_MIN;
    const int32_t most = is_unsigned ? UINT8_MAX : INT8_MAX;
    int32x4_t bytes = is_unsigned
                          ? vreinterpretq_s32_u32(vshrq_n_u32(vqshluq_n_s32(totals, rise), 24))
                          : vshrq_n_s32(vqshlq_n_s32(totals, rise), 24);
    bytes = (low > least) ? vmaxq_s32(bytes, vdupq_n_s32(low)) : bytes;
    return (high < most) ? vminq_s32(bytes, vdupq_n_s32(high)) : bytes;
}

/* Writes the lowest byte of each lane, or of the first `count`. */
ENTRAIN_INLINE void entrain_store_lanes(uint8_t **output, int32x4_t bytes, int32_t count) {
    if (count < 4) {
        vstrbq_p_s32((int8_t *)*output, bytes, vctp32q((uint32_t)count));
        *output += count;
    } else {
        __asm volatile("vstrb.32 %q1, [%0], #4" : "+l"(*output) : "w"(bytes) : "memory");
    }
}

#endif
