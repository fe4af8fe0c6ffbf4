#include "scores.h"

#define ROOTS 24u /* bits of an exponent's fraction that matter */

/* 2 to the power -1/2, -1/4, -1/8, ..., as fractions of 2^32. */
static const uint32_t roots[ROOTS] = {
    0xb504f334u, 0xd744fccbu, 0xeac0c6e8u, 0xf5257d15u, 0xfa83b2dbu, 0xfd3e0c0du,
    0xfe9e115cu, 0xff4ecb59u, 0xffa75652u, 0xffd3a752u, 0xffe9d2b3u, 0xfff4e91cu,
    0xfffa747fu, 0xfffd3a3bu, 0xfffe9d1du, 0xffff4e8eu, 0xffffa747u, 0xffffd3a3u,
    0xffffe9d2u, 0xfffff4e9u, 0xfffffa74u, 0xfffffd3au, 0xfffffe9du, 0xffffff4fu,
};

/* The number that a byte holds, read as signed where `least` is -128 and as unsigned where it is 0.
 */
static int32_t value_of(int8_t byte, int32_t least) {
    return (byte < least) ? (byte + 256) : byte;
}

/* 2 to the power -octaves as a fraction of 2^32, within 2^-23 of itself and 2^-32; `octaves` counts
 * in 2^-32 too. Every set bit of its fraction is a factor. */
static uint32_t power_of_half(uint64_t octaves) {
    const uint32_t whole = (uint32_t)(octaves >> 32);
    uint32_t fraction = (uint32_t)octaves;
    uint32_t power = UINT32_MAX;
    if (whole > 31u) {
        return 0;
    }
    for (uint32_t i = 0; i < ROOTS; i++) {
        if ((fraction >> 31) != 0u) {
            power = (uint32_t)(((uint64_t)power * roots[i]) >> 32);
        }
        fraction <<= 1;
    }
    return power >> whole;
}

void scores_from_logits(const int8_t *logits, uint32_t count, int32_t least,
                        uint64_t octaves_per_step, uint32_t *scores) {
    int32_t largest = value_of(logits[0], least);
    uint64_t sum = 0;
    for (uint32_t i = 1; i < count; i++) {
        const int32_t logit = value_of(logits[i], least);
        largest = (logit > largest) ? logit : largest;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t steps = (uint32_t)(largest - value_of(logits[i], least));
        scores[i] = power_of_half(steps * octaves_per_step);
        sum += scores[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        scores[i] = (uint32_t)(((uint64_t)scores[i] * SCORE_ONE + sum / 2u) / sum);
    }
}
