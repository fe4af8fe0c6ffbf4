/* Rows for Helium: channels padded to whole vectors, or turned so that tokens lie side by side. */
#ifndef ENTRAIN_ATTENTION_MVE_H
#define ENTRAIN_ATTENTION_MVE_H

#include "entrain_attention.h"
#include "entrain_division.h"

#define ENTRAIN_BYTES  16 /* lanes of a vector */
#define ENTRAIN_HALVES 8

/* The zero point that belongs to bytes as entrain_signed_bytes makes them. */
ENTRAIN_INLINE int32_t entrain_signed_zero_point(struct entrain_rows rows) {
    return rows.is_unsigned ? rows.zero_point - 128 : rows.zero_point;
}

/* 16 channels from c on as bytes with a sign, 0 behind the last channel. */
ENTRAIN_INLINE int8x16_t entrain_signed_bytes(struct entrain_rows rows, const int8_t *row,
                                              int32_t c, int32_t channels) {
    const bool is_whole = c + ENTRAIN_BYTES <= channels;
    const mve_pred16_t present = vctp8q((uint32_t)(channels - c));
    const int8x16_t bytes = is_whole ? vldrbq_s8(row + c) : vldrbq_z_s8(row + c, present);
    if (!rows.is_unsigned) {
        return bytes;
    }
    const int8x16_t flipped = veorq_s8(bytes, vdupq_n_s8(INT8_MIN));
    return is_whole ? flipped : vpselq_s8(flipped, vdupq_n_s8(0), present);
}

/* A head's rows, each padded to `width` bytes, a multiple of 16; an odd number of rows gets one
 * more of zeros. */
ENTRAIN_INLINE void entrain_pack_rows(struct entrain_rows rows, int32_t head, int32_t tokens,
                                      int32_t channels, int32_t width, int8_t *to) {
    for (int32_t t = 0; t < tokens; t++) {
        const int8_t *row = entrain_row(rows, head, t);
        for (int32_t c = 0; c < width; c += ENTRAIN_BYTES) {
            vstrbq_s8(to + c, entrain_signed_bytes(rows, row, c, channels));
        }
        to += width;
    }
    for (int32_t c = 0; tokens % 2 != 0 && c < width; c += ENTRAIN_BYTES) {
        vstrbq_s8(to + c, vdupq_n_s8(0));
    }
}

/* 8 tokens' channel c without the zero point, 0 behind the last token. */
ENTRAIN_INLINE int16x8_t entrain_turned(struct entrain_rows rows, const int8_t *first,
                                        int32_t tokens) {
    const uint16x8_t steps = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)rows.token);
    const mve_pred16_t present = vctp16q((uint32_t)tokens);
    const int16x8_t stored = rows.is_unsigned ? vreinterpretq_s16_u16(vldrbq_gather_offset_z_u16(
                                                    (const uint8_t *)first, steps, present))
                                              : vldrbq_gather_offset_z_s16(first, steps, present);
    const int16x8_t zero = vdupq_n_s16((int16_t)rows.zero_point);
    return (rows.zero_point == 0) ? stored
                                  : vpselq_s16(vsubq_s16(stored, zero), vdupq_n_s16(0), present);
}

/* A head's rows turned, two channels side by side: [channel / 2][token / 8][2][8]. */
ENTRAIN_INLINE void entrain_turn_rows(struct entrain_rows rows, int32_t head, int32_t tokens,
                                      int32_t channels, int16_t *to) {
    for (int32_t c = 0; c < channels; c += 2) {
        const int32_t next = entrain_least(c + 1, channels - 1);
        for (int32_t t = 0; t < tokens; t += ENTRAIN_HALVES) {
            const int8_t *row = entrain_row(rows, head, t);
            vstrhq_s16(to, entrain_turned(rows, row + c, tokens - t));
            vstrhq_s16(to + ENTRAIN_HALVES, entrain_turned(rows, row + next, tokens - t));
            to += 2 * ENTRAIN_HALVES;
        }
    }
}

/* The sums of products of two rows of halves with three: [row of three][row of two]. */
struct entrain_six {
    int32_t sums[3][2];
};

/* Vectors of a row that one block of instructions reads; longer rows take several. */
#define ENTRAIN_BLOCK_VECTORS 8

#define ENTRAIN_SIX_PRODUCTS(multiply)                                                             \
    "vldrh.u16 q0, [%[two]], #16\n\t"                                                              \
    "vldrh.u16 q1, [%[three]], #16\n\t" multiply " %[s00], q0, q1\n\t"                             \
    "vldrh.u16 q2, [%[two]], #16\n\t" multiply " %[s01], q2, q1\n\t"                               \
    "vldrh.u16 q3, [%[three]], #16\n\t" multiply " %[s10], q0, q3\n\t" multiply                    \
    " %[s11], q2, q3\n\t"                                                                          \
    "vldrh.u16 q4, [%[three]], #16\n\t" multiply " %[s20], q0, q4\n\t" multiply                    \
    " %[s21], q2, q4\n\t"

/* The products of the first vectors; both rows move on. The sums need even registers. */
ENTRAIN_INLINE struct entrain_six entrain_first_products(const int16_t **two,
                                                         const int16_t **three) {
    struct entrain_six six;
    __asm(ENTRAIN_SIX_PRODUCTS("vmladav.s16")
          : [two] "+r"(*two), [three] "+r"(*three), [s00] "=&Te"(six.sums[0][0]),
            [s01] "=&Te"(six.sums[0][1]), [s10] "=&Te"(six.sums[1][0]),
            [s11] "=&Te"(six.sums[1][1]), [s20] "=&Te"(six.sums[2][0]), [s21] "=&Te"(six.sums[2][1])
          :
          : "q0", "q1", "q2", "q3", "q4", "memory");
    return six;
}

/* Adds the products of the next vectors. */
ENTRAIN_INLINE void entrain_add_products(const int16_t **two, const int16_t **three,
                                         int32_t vectors, struct entrain_six *six) {
    __asm(".rept %c[vectors]\n\t" ENTRAIN_SIX_PRODUCTS("vmladava.s16") ".endr"
          : [two] "+r"(*two), [three] "+r"(*three), [s00] "+Te"(six->sums[0][0]),
            [s01] "+Te"(six->sums[0][1]), [s10] "+Te"(six->sums[1][0]),
            [s11] "+Te"(six->sums[1][1]), [s20] "+Te"(six->sums[2][0]), [s21] "+Te"(six->sums[2][1])
          : [vectors] "i"(vectors)
          : "q0", "q1", "q2", "q3", "q4", "memory");
}

/* Rows of `vectors` vectors, which lie side by side: [vector][2][8], which moves on behind them,
 * and [vector][3][8]. */
ENTRAIN_INLINE struct entrain_six entrain_products(const int16_t **two, const int16_t *three,
                                                   int32_t vectors) {
    struct entrain_six six = entrain_first_products(two, &three);
    const int32_t rest = vectors - 1;
    for (int32_t v = 0; v < rest / ENTRAIN_BLOCK_VECTORS; v++) {
        entrain_add_products(two, &three, ENTRAIN_BLOCK_VECTORS, &six);
    }
    if (rest % ENTRAIN_BLOCK_VECTORS > 0) {
        entrain_add_products(two, &three, rest % ENTRAIN_BLOCK_VECTORS, &six);
    }
    return six;
}

/* A row of sums, up to a multiple of 4 long, over what `factor` stands for: entrain_divide_to_byte
 * of four at a time. */
ENTRAIN_INLINE void entrain_divide_row(const int32_t *sums, int32_t factor, int32_t shift,
                                       struct entrain_result result, int32_t channels, int8_t *to) {
    const int32_t offset =
        result.zero_point * ((int32_t)1 << (shift - 32)) + ((int32_t)1 << (shift - 33));
    const int32x4_t factors = vdupq_n_s32(factor);
    const int32x4_t low = vdupq_n_s32(result.is_unsigned ? 0 : INT8_MIN);
    const int32x4_t high = vdupq_n_s32(result.is_unsigned ? UINT8_MAX : INT8_MAX);
    for (int32_t c = 0; c < channels; c += 4) {
        const int32x4_t products = vaddq_n_s32(vmulhq_s32(vldrwq_s32(sums + c), factors), offset);
        const int32x4_t steps = vshlq_r_s32(products, 32 - shift);
        const int32x4_t bytes = vminq_s32(vmaxq_s32(steps, low), high);
        if (c + 4 <= channels) {
            vstrbq_s32(to + c, bytes);
        } else {
            vstrbq_p_s32(to + c, bytes, vctp32q((uint32_t)(channels - c)));
        }
    }
}

#endif
