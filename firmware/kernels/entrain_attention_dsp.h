/* Rows for SMLAD: two of them side by side, two numbers a word, and blocks of their products.
 *
 * Rows a and b lie as words a0 b0 a1 b1 ..., so that one LDM brings the same two words of both. */
#ifndef ENTRAIN_ATTENTION_DSP_H
#define ENTRAIN_ATTENTION_DSP_H

#include "entrain_attention.h"

typedef uint32_t entrain_halves_pair __attribute__((may_alias));

/* Words of a row that one block of instructions reads; longer rows take several. */
#define ENTRAIN_BLOCK_WORDS 32

/* The sums of products of two rows each: [row of the left pair][row of the right pair]. */
struct entrain_block {
    int32_t sums[2][2];
};

#if defined(ENTRAIN_SIMD32)

ENTRAIN_INLINE uint32_t entrain_ssub16(uint32_t a, uint32_t b) {
    return (uint32_t)__ssub16((int16x2_t)a, (int16x2_t)b);
}

/* The low halves of both, or the high ones; the first argument's lowest. */
ENTRAIN_INLINE uint32_t entrain_low_halves(uint32_t a, uint32_t b) {
    uint32_t halves;
    __asm("pkhbt %0, %1, %2, lsl #16" : "=r"(halves) : "r"(a), "r"(b));
    return halves;
}

ENTRAIN_INLINE uint32_t entrain_high_halves(uint32_t a, uint32_t b) {
    uint32_t halves;
    __asm("pkhtb %0, %1, %2, asr #16" : "=r"(halves) : "r"(b), "r"(a));
    return halves;
}

/* a * b + number, in one instruction whatever the number is. */
ENTRAIN_INLINE uint32_t entrain_multiply_add(uint32_t a, uint32_t b, uint32_t number) {
    uint32_t sum;
    __asm("mla %0, %1, %2, %3" : "=r"(sum) : "r"(a), "r"(b), "r"(number));
    return sum;
}

#define ENTRAIN_LOAD_TWO_WORDS                                                                     \
    "ldmia %[left]!, {r4, r5, r6, r7}\n\t"                                                         \
    "ldmia %[right]!, {r8, r9, r10, r11}\n\t"

#define ENTRAIN_ADD_ONE_WORD(left0, left1, right0, right1)                                         \
    "smlad %[s00], " left0 ", " right0 ", %[s00]\n\t"                                              \
    "smlad %[s01], " left0 ", " right1 ", %[s01]\n\t"                                              \
    "smlad %[s10], " left1 ", " right0 ", %[s10]\n\t"                                              \
    "smlad %[s11], " left1 ", " right1 ", %[s11]\n\t"

/* %c[twos] times two words, then %c[odd] words. */
#define ENTRAIN_ADD_WORDS                                                                          \
    ".rept %c[twos]\n\t" ENTRAIN_LOAD_TWO_WORDS ENTRAIN_ADD_ONE_WORD("r4", "r5", "r8", "r9")       \
        ENTRAIN_ADD_ONE_WORD("r6", "r7", "r10",                                                    \
                             "r11") ".endr\n\t"                                                    \
                                    ".if %c[odd]\n\t"                                              \
                                    "ldmia %[left]!, {r4, r5}\n\t"                                 \
                                    "ldmia %[right]!, {r8, r9}\n\t" ENTRAIN_ADD_ONE_WORD(          \
                                        "r4", "r5", "r8", "r9") ".endif"

/* Every register is taken, so all of them are named: with a choice the compiler may find none. */
#define ENTRAIN_NAMED_SUMS                                                                         \
    register int32_t s00 __asm("r0");                                                              \
    register int32_t s01 __asm("r1");                                                              \
    register int32_t s10 __asm("r2");                                                              \
    register int32_t s11 __asm("r3");                                                              \
    register const entrain_halves_pair *a __asm("r12") = *left;                                    \
    register const entrain_halves_pair *b __asm("r14") = *right

#define ENTRAIN_OTHERS "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "memory"

/* The products of the first `words` words, from 2 to ENTRAIN_BLOCK_WORDS; moves on. */
ENTRAIN_INLINE struct entrain_block entrain_first_products(const entrain_halves_pair **left,
                                                           const entrain_halves_pair **right,
                                                           int32_t words) {
    ENTRAIN_NAMED_SUMS;
    __asm(ENTRAIN_LOAD_TWO_WORDS
          "smuad %[s00], r4, r8\n\t"
          "smuad %[s01], r4, r9\n\t"
          "smuad %[s10], r5, r8\n\t"
          "smuad %[s11], r5, r9\n\t" ENTRAIN_ADD_ONE_WORD("r6", "r7", "r10", "r11")
              ENTRAIN_ADD_WORDS
          : [left] "+r"(a), [right] "+r"(b), [s00] "=&r"(s00), [s01] "=&r"(s01), [s10] "=&r"(s10),
            [s11] "=&r"(s11)
          : [twos] "i"(words / 2 - 1), [odd] "i"(words % 2)
          : ENTRAIN_OTHERS);
    *left = a;
    *right = b;
    return (struct entrain_block){{{s00, s01}, {s10, s11}}};
}

/* Adds the products of the next `words` words, at most ENTRAIN_BLOCK_WORDS; moves on. */
ENTRAIN_INLINE void entrain_add_products(const entrain_halves_pair **left,
                                         const entrain_halves_pair **right, int32_t words,
                                         struct entrain_block *block) {
    ENTRAIN_NAMED_SUMS;
    s00 = block->sums[0][0];
    s01 = block->sums[0][1];
    s10 = block->sums[1][0];
    s11 = block->sums[1][1];
    __asm(ENTRAIN_ADD_WORDS
          : [left] "+r"(a), [right] "+r"(b), [s00] "+r"(s00), [s01] "+r"(s01), [s10] "+r"(s10),
            [s11] "+r"(s11)
          : [twos] "i"(words / 2), [odd] "i"(words % 2)
          : ENTRAIN_OTHERS);
    *left = a;
    *right = b;
    *block = (struct entrain_block){{{s00, s01}, {s10, s11}}};
}

#else

ENTRAIN_INLINE uint32_t entrain_ssub16(uint32_t a, uint32_t b) {
    return entrain_halves((int16_t)(a & 0xFFFFu) - (int16_t)(b & 0xFFFFu),
                          (int16_t)(a >> 16) - (int16_t)(b >> 16));
}

/* Differences of halves without a sign, 0 at least. */
ENTRAIN_INLINE uint32_t entrain_uqsub16(uint32_t a, uint32_t b) {
    const int32_t low = (int32_t)(a & 0xFFFFu) - (int32_t)(b & 0xFFFFu);
    const int32_t high = (int32_t)(a >> 16) - (int32_t)(b >> 16);
    return entrain_halves((low > 0) ? low : 0, (high > 0) ? high : 0);
}

/* The larger halves, without a sign. */
ENTRAIN_INLINE uint32_t entrain_largest16(uint32_t a, uint32_t b) {
    const uint32_t low = ((a & 0xFFFFu) > (b & 0xFFFFu)) ? a : b;
    const uint32_t high = ((a >> 16) > (b >> 16)) ? a : b;
    return (high & 0xFFFF0000u) | (low & 0xFFFFu);
}

ENTRAIN_INLINE uint32_t entrain_low_halves(uint32_t a, uint32_t b) {
    return (a & 0xFFFFu) | (b << 16);
}

ENTRAIN_INLINE uint32_t entrain_high_halves(uint32_t a, uint32_t b) {
    return (a >> 16) | (b & 0xFFFF0000u);
}

ENTRAIN_INLINE uint32_t entrain_multiply_add(uint32_t a, uint32_t b, uint32_t number) {
    return a * b + number;
}

ENTRAIN_INLINE void entrain_add_products(const entrain_halves_pair **left,
                                         const entrain_halves_pair **right, int32_t words,
                                         struct entrain_block *block) {
    for (int32_t w = 0; w < words; w++) {
        for (int32_t a = 0; a < 2; a++) {
            for (int32_t b = 0; b < 2; b++) {
                block->sums[a][b] =
                    entrain_smlad((*left)[2 * w + a], (*right)[2 * w + b], block->sums[a][b]);
            }
        }
    }
    *left += 2 * words;
    *right += 2 * words;
}

ENTRAIN_INLINE struct entrain_block entrain_first_products(const entrain_halves_pair **left,
                                                           const entrain_halves_pair **right,
                                                           int32_t words) {
    struct entrain_block block = {{{0, 0}, {0, 0}}};
    entrain_add_products(left, right, words, &block);
    return block;
}

#endif

/* The products of two pairs of rows of `words` words; `left` moves on behind them. */
ENTRAIN_INLINE struct entrain_block entrain_products(const entrain_halves_pair **left,
                                                     const entrain_halves_pair *right,
                                                     int32_t words) {
    struct entrain_block block = {{{0, 0}, {0, 0}}};
    const int32_t first = entrain_least(words, ENTRAIN_BLOCK_WORDS);
    const int32_t rest = words - first;
    if (first >= 2) {
        block = entrain_first_products(left, &right, first);
    } else {
        entrain_add_products(left, &right, first, &block);
    }
    for (int32_t w = 0; w < rest / ENTRAIN_BLOCK_WORDS; w++) {
        entrain_add_products(left, &right, ENTRAIN_BLOCK_WORDS, &block);
    }
    if (rest % ENTRAIN_BLOCK_WORDS > 0) {
        entrain_add_products(left, &right, rest % ENTRAIN_BLOCK_WORDS, &block);
    }
    return block;
}

/* Four channels of a row, those from d_head on equal to the zero point. */
ENTRAIN_INLINE uint32_t entrain_four_channels(struct entrain_rows rows, const int8_t *row,
                                              int32_t c, int32_t channels) {
    if (c + 4 <= channels) {
        return entrain_load_word(row + c);
    }
    uint32_t word = ((uint32_t)rows.zero_point & 0xFFu) * 0x01010101u;
    for (int32_t i = 0; i < channels - c; i++) {
        word = (word & ~(0xFFu << (8 * i))) | ((uint32_t)(uint8_t)row[c + i] << (8 * i));
    }
    return word;
}

/* Channels 0 and 2 of four, or 1 and 3, as halves without their zero point. */
ENTRAIN_INLINE uint32_t entrain_even_channels(struct entrain_rows rows, uint32_t word) {
    const uint32_t wide = rows.is_unsigned ? entrain_uxtb16(word) : entrain_sxtb16(word);
    const uint32_t zero = ((uint32_t)rows.zero_point & 0xFFFFu) * 0x00010001u;
    return (rows.zero_point == 0) ? wide : entrain_ssub16(wide, zero);
}

ENTRAIN_INLINE uint32_t entrain_odd_channels(struct entrain_rows rows, uint32_t word) {
    const uint32_t wide = rows.is_unsigned ? entrain_uxtb16_ror8(word) : entrain_sxtb16_ror8(word);
    const uint32_t zero = ((uint32_t)rows.zero_point & 0xFFFFu) * 0x00010001u;
    return (rows.zero_point == 0) ? wide : entrain_ssub16(wide, zero);
}

/* Two rows without their zero point, side by side: 4 words for every 4 channels. */
ENTRAIN_INLINE void entrain_pair_rows(struct entrain_rows rows, const int8_t *a, const int8_t *b,
                                      int32_t channels, entrain_halves_pair *to) {
    for (int32_t c = 0; c < channels; c += 4) {
        const uint32_t first = entrain_four_channels(rows, a, c, channels);
        const uint32_t second = entrain_four_channels(rows, b, c, channels);
        to[0] = entrain_even_channels(rows, first);
        to[1] = entrain_even_channels(rows, second);
        to[2] = entrain_odd_channels(rows, first);
        to[3] = entrain_odd_channels(rows, second);
        to += 4;
    }
}

/* A head's rows turned: each channel becomes a row of tokens, channels 2p and 2p + 1 side by side.
 * A pair takes 2 * words words; with an odd number of tokens the last half is 0. */
ENTRAIN_INLINE void entrain_pair_channels(struct entrain_rows rows, int32_t head, int32_t tokens,
                                          int32_t channels, int32_t words,
                                          entrain_halves_pair *to) {
    for (int32_t c = 0; c < channels; c += 4) {
        entrain_halves_pair *even = to + (c / 2) * 2 * words;
        entrain_halves_pair *odd = even + 2 * words;
        for (int32_t t = 0; t < tokens; t += 2) {
            const int8_t *row = entrain_row(rows, head, t);
            const uint32_t first = entrain_four_channels(rows, row, c, channels);
            const uint32_t second =
                entrain_four_channels(rows, row + rows.token, c, (t + 1 < tokens) ? channels : 0);
            const uint32_t even0 = entrain_even_channels(rows, first);
            const uint32_t odd0 = entrain_odd_channels(rows, first);
            const uint32_t even1 = entrain_even_channels(rows, second);
            const uint32_t odd1 = entrain_odd_channels(rows, second);
            even[t] = entrain_low_halves(even0, even1);
            even[t + 1] = entrain_low_halves(odd0, odd1);
            odd[t] = entrain_high_halves(even0, even1);
            odd[t + 1] = entrain_high_halves(odd0, odd1);
        }
    }
}

#endif
