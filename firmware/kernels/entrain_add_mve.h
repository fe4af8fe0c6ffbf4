/* Sums of bytes with Helium: four elements a vector, in 32 bits. */
#ifndef ENTRAIN_ADD_MVE_H
#define ENTRAIN_ADD_MVE_H

#include "entrain_lanes_mve.h"

/* Two vectors, so that none is needed right after it was loaded. */
#define ENTRAIN_ADD_BLOCK   8
#define ENTRAIN_ADD_VECTORS (ENTRAIN_ADD_BLOCK / 4)

/* The next `count` elements, a block at most. */
ENTRAIN_INLINE void entrain_add_block(struct entrain_add_place *at, int32_t count,
                                      const struct entrain_add *of) {
    int32x4_t totals[ENTRAIN_ADD_VECTORS];
#pragma GCC unroll 8
    for (int32_t k = 0; k < of->addends; k++) {
        const struct entrain_addend addend = of->addend[k];
        int32x4_t bytes[ENTRAIN_ADD_VECTORS];
#pragma GCC unroll 2
        for (int32_t i = 0; i < count; i += 4) {
            bytes[i / 4] = entrain_next_lanes(&at->addend[k], count - i, addend.is_unsigned);
        }
#pragma GCC unroll 2
        for (int32_t i = 0; i < count; i += 4) {
            if (k == 0 && at->constants == NULL) {
                totals[i / 4] =
                    vmlasq_n_s32(bytes[i / 4], vdupq_n_s32(addend.multiplier), at->constant);
            } else {
                const int32x4_t total =
                    (k == 0) ? entrain_word_lanes(at->constants + i, count - i) : totals[i / 4];
                totals[i / 4] = vmlaq_n_s32(total, bytes[i / 4], addend.multiplier);
            }
        }
    }
#pragma GCC unroll 2
    for (int32_t i = 0; i < count; i += 4) {
        const int32x4_t bytes =
            entrain_clipped_lanes(totals[i / 4], of->shift, of->low, of->high, of->is_unsigned);
        entrain_store_lanes(&at->output, bytes, count - i);
    }
    at->constants += (at->constants == NULL) ? 0 : count;
}

#endif
