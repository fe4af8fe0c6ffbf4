/* What a head of oscillator attention keeps with SMLAD, and its sums over all tokens. */
#ifndef ENTRAIN_OSCILLATOR_MOMENTS_DSP_H
#define ENTRAIN_OSCILLATOR_MOMENTS_DSP_H

#include "entrain_attention_dsp.h"

/* What a head keeps, side by side as entrain_attention_dsp.h has it.
 *
 * Of two queries: channels, couplings or read-out weights of all keys, closenesses, fields, states.
 * Of the head: keys two by two, or the drive with its sums; the bias in the unit of the fields; for
 * exponent 1 a row a channel of the value's sum and moments, else the values, turned. */
struct entrain_oscillator_plan {
    int32_t pairs; /* of components */
    int32_t channel_words;
    int32_t key_words;
    int32_t *fields;
    int32_t *bias;
    entrain_halves_pair *states;
    entrain_halves_pair *queries;
    entrain_halves_pair *weights;
    entrain_halves_pair *keys;
    entrain_halves_pair *drive;
    int32_t *drive_sums;
    entrain_halves_pair *moments;
    entrain_halves_pair *values;
    int32_t *closeness;
};

ENTRAIN_INLINE struct entrain_oscillator_plan
entrain_oscillator_plan(struct entrain_oscillator oscillator, void *scratch) {
    const bool separable = oscillator.coupling == ENTRAIN_SEPARABLE;
    struct entrain_oscillator_plan plan;
    plan.pairs = entrain_component_pairs(oscillator);
    plan.channel_words = entrain_up_to(oscillator.d_head, 4) / 2;
    plan.key_words = entrain_up_to(oscillator.keys, 2) / 2;
    plan.fields = (int32_t *)scratch;
    plan.bias = plan.fields + 4 * plan.pairs;
    plan.states = (entrain_halves_pair *)(plan.bias + 2 * plan.pairs);
    plan.queries = plan.states + 2 * plan.pairs;
    plan.weights = plan.queries + 2 * plan.channel_words;
    plan.keys = plan.weights + (separable && oscillator.exponent == 1 ? 0 : 2 * plan.key_words);
    plan.drive = plan.keys;
    plan.drive_sums = (int32_t *)(plan.drive + 2 * plan.pairs * plan.channel_words);
    plan.moments =
        separable ? (entrain_halves_pair *)plan.drive_sums + 4 * plan.pairs * plan.channel_words
                  : plan.keys + 2 * plan.key_words * plan.channel_words;
    plan.values = plan.moments;
    plan.closeness =
        (int32_t *)(plan.values + entrain_up_to(oscillator.d_value, 4) * plan.key_words);
    return plan;
}

#if defined(ENTRAIN_SIMD32)

/* Halves below 0 become 0; those above 255 do not occur. */
ENTRAIN_INLINE uint32_t entrain_rectified_halves(uint32_t halves) {
    uint32_t rectified;
    __asm("usat16 %0, #8, %1" : "=r"(rectified) : "r"(halves));
    return rectified;
}

/* x / 2^shift, kept within `bits` bits without a sign. */
ENTRAIN_INLINE int32_t entrain_shift_to_unsigned(int32_t x, int32_t shift, int32_t bits) {
    int32_t kept;
    __asm("usat %0, %1, %2, asr %3" : "=r"(kept) : "i"(bits), "r"(x), "i"(shift));
    return kept;
}

#else

ENTRAIN_INLINE uint32_t entrain_rectified_halves(uint32_t halves) {
    const uint32_t low = ((halves & 0x8000u) != 0) ? 0 : halves & 0xFFFFu;
    const uint32_t high = ((halves & 0x80000000u) != 0) ? 0 : halves & 0xFFFF0000u;
    return high | low;
}

ENTRAIN_INLINE int32_t entrain_shift_to_unsigned(int32_t x, int32_t shift, int32_t bits) {
    return entrain_clip(x >> shift, 0, (1 << bits) - 1);
}

#endif

/* Lines of no instruction, for those of the products that the assembler repeats and the compiler
 * counts once: it places constants by that count, and they have to stay within reach. */
#define ENTRAIN_TEN_LINES   "\n\n\n\n\n\n\n\n\n\n"
#define ENTRAIN_FORTY_LINES ENTRAIN_TEN_LINES ENTRAIN_TEN_LINES ENTRAIN_TEN_LINES ENTRAIN_TEN_LINES
#define ENTRAIN_COUNT_PRODUCTS()                                                                   \
    __asm volatile(ENTRAIN_FORTY_LINES ENTRAIN_FORTY_LINES ENTRAIN_FORTY_LINES ENTRAIN_FORTY_LINES)

ENTRAIN_INLINE struct entrain_block entrain_counted_products(const entrain_halves_pair **left,
                                                             const entrain_halves_pair *right,
                                                             int32_t words) {
    ENTRAIN_COUNT_PRODUCTS();
    return entrain_products(left, right, words);
}

/* Products with a number added to each sum. */
ENTRAIN_INLINE struct entrain_block entrain_products_above(const entrain_halves_pair **left,
                                                           const entrain_halves_pair *right,
                                                           int32_t words, int32_t number) {
    struct entrain_block block = {{{number, number}, {number, number}}};
    ENTRAIN_COUNT_PRODUCTS();
    for (int32_t w = 0; w < words / ENTRAIN_BLOCK_WORDS; w++) {
        entrain_add_products(left, &right, ENTRAIN_BLOCK_WORDS, &block);
    }
    if (words % ENTRAIN_BLOCK_WORDS > 0) {
        entrain_add_products(left, &right, words % ENTRAIN_BLOCK_WORDS, &block);
    }
    return block;
}

ENTRAIN_INLINE const entrain_halves_pair *
entrain_anchor_words(struct entrain_oscillator oscillator, const int16_t *anchors, int32_t pair) {
    return (const entrain_halves_pair *)anchors + pair * entrain_anchor_pair(oscillator) / 2;
}

/* The sums over all tokens of two channels: times two components of the anchors, and alone. */
struct entrain_moments {
    struct entrain_block block; /* [channel][component] */
    int32_t totals[2];
};

/* Channels c and c + 2 of four, or c + 1 and c + 3 if odd, without their zero point. */
ENTRAIN_INLINE uint32_t entrain_two_channels(struct entrain_rows rows, const int8_t *row, int32_t c,
                                             int32_t channels, bool odd, bool rectified) {
    const uint32_t word = entrain_four_channels(rows, row, c, channels);
    const uint32_t two = odd ? entrain_odd_channels(rows, word) : entrain_even_channels(rows, word);
    const bool positive = rows.is_unsigned && rows.zero_point == 0;
    return (rectified && !positive) ? entrain_rectified_halves(two) : two;
}

/* Adds two tokens: a and b are two channels of each, r one component of both each. */
ENTRAIN_INLINE void entrain_add_moments(uint32_t a, uint32_t b, uint32_t r0, uint32_t r1,
                                        struct entrain_moments *moments) {
    const uint32_t low = entrain_low_halves(a, b);
    const uint32_t high = entrain_high_halves(a, b);
    int32_t(*sums)[2] = moments->block.sums;
    sums[0][0] = entrain_smlad(low, r0, sums[0][0]);
    sums[0][1] = entrain_smlad(low, r1, sums[0][1]);
    sums[1][0] = entrain_smlad(high, r0, sums[1][0]);
    sums[1][1] = entrain_smlad(high, r1, sums[1][1]);
    moments->totals[0] = entrain_smlad(low, 0x00010001u, moments->totals[0]);
    moments->totals[1] = entrain_smlad(high, 0x00010001u, moments->totals[1]);
}

ENTRAIN_INLINE struct entrain_moments entrain_two_moments(struct entrain_rows rows,
                                                          const int8_t *row, int32_t tokens,
                                                          int32_t c, int32_t channels, bool odd,
                                                          bool rectified,
                                                          const entrain_halves_pair *anchors) {
    struct entrain_moments moments = {{{{0, 0}, {0, 0}}}, {0, 0}};
    const entrain_halves_pair *end = anchors + tokens / 2 * 2;
#pragma GCC unroll 2
    while (anchors != end) {
        const uint32_t a = entrain_two_channels(rows, row, c, channels, odd, rectified);
        const uint32_t b =
            entrain_two_channels(rows, row + rows.token, c, channels, odd, rectified);
        entrain_add_moments(a, b, anchors[0], anchors[1], &moments);
        row += 2 * rows.token;
        anchors += 2;
    }
    if (tokens % 2 != 0) {
        const uint32_t a = entrain_two_channels(rows, row, c, channels, odd, rectified);
        entrain_add_moments(a, 0, anchors[0], anchors[1], &moments);
    }
    return moments;
}

/* The drive as [pair of components][word of channels], words of both components side by side, and
 * the bias in its unit. */
ENTRAIN_INLINE void entrain_oscillator_drive(struct entrain_oscillator oscillator, int32_t head,
                                             const int16_t *anchors,
                                             struct entrain_oscillator_plan plan) {
    const int8_t *key = entrain_row(oscillator.key, head, 0);
    uint32_t magnitudes = 0;
    int32_t *sums = plan.drive_sums;
    for (int32_t p = 0; p < plan.pairs; p++) {
        const entrain_halves_pair *words = entrain_anchor_words(oscillator, anchors, p);
        for (int32_t w = 0; w < plan.channel_words; w++) {
            const struct entrain_moments moments =
                entrain_two_moments(oscillator.key, key, oscillator.keys, (w / 2) * 4,
                                    oscillator.d_head, w % 2 != 0, true, words);
            for (int32_t o = 0; o < 2; o++) {
                for (int32_t c = 0; c < 2; c++) {
                    const int32_t sum = moments.block.sums[c][o];
                    magnitudes |= entrain_magnitude(sum);
                    *sums = sum;
                    sums++;
                }
            }
        }
    }
    const int32_t shift = entrain_drive_shift(magnitudes, oscillator.weight_bits);
    for (int32_t i = 0; i < 2 * plan.pairs * plan.channel_words; i++) {
        const int32_t low = entrain_half(plan.drive_sums[2 * i], shift, oscillator.weight_bits);
        const int32_t high =
            entrain_half(plan.drive_sums[2 * i + 1], shift, oscillator.weight_bits);
        plan.drive[i] = entrain_low_halves((uint32_t)low, (uint32_t)high);
    }
    const int32_t *bias = oscillator.bias + entrain_head_components(oscillator, head);
    for (int32_t o = 0; o < 2 * plan.pairs; o++) {
        plan.bias[o] = entrain_rounded(bias[o], shift);
    }
}

/* A row a channel: the sum of values, then the moments of each pair of components. */
ENTRAIN_INLINE void entrain_oscillator_moments(struct entrain_oscillator oscillator, int32_t head,
                                               const int16_t *anchors,
                                               struct entrain_oscillator_plan plan) {
    const int8_t *value = entrain_row(oscillator.value, head, 0);
    const int32_t width = 1 + plan.pairs;
    for (int32_t p = 0; p < plan.pairs; p++) {
        const entrain_halves_pair *words = entrain_anchor_words(oscillator, anchors, p);
        for (int32_t w = 0; w < entrain_up_to(oscillator.d_value, 4) / 2; w++) {
            const struct entrain_moments moments =
                entrain_two_moments(oscillator.value, value, oscillator.keys, (w / 2) * 4,
                                    oscillator.d_value, w % 2 != 0, false, words);
            for (int32_t c = 0; c < 2; c++) {
                entrain_halves_pair *row = plan.moments + ((w / 2) * 4 + w % 2 + 2 * c) * width;
                const int32_t low =
                    entrain_half(moments.block.sums[c][0], oscillator.moment_shift, 15);
                const int32_t high =
                    entrain_half(moments.block.sums[c][1], oscillator.moment_shift, 15);
                row[0] = (uint32_t)(moments.totals[c] * oscillator.value_factor);
                row[1 + p] = entrain_low_halves((uint32_t)low, (uint32_t)high);
            }
        }
    }
}

#endif
