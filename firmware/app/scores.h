/* From integer logits to scores that add up to one, in integers: not every core has floats. */
#ifndef ENTRAIN_SCORES_H
#define ENTRAIN_SCORES_H

#include <stdint.h>

/* The largest score; scores are millionths. */
#define SCORE_ONE 1000000u

/* A logit's step as a power of two: exp(scale) = 2^(octaves / 2^32). A constant of the compiler's
 * for a constant scale, from 0 to LARGEST_SCALE; what lies above is the same as it. */
#define SCORE_LARGEST_SCALE 1048576.0
#define SCORE_OCTAVES(scale)                                                                       \
    ((uint64_t)(((double)(scale) < SCORE_LARGEST_SCALE ? (double)(scale) : SCORE_LARGEST_SCALE) *  \
                1.4426950408889634 * 4294967296.0))

/* Softmax of the dequantized logits. The zero point cancels: only differences of logits matter.
 * `count` >= 1; `least` is what the smallest logit can be, -128 for int8 and 0 for uint8;
 * `octaves_per_step` is SCORE_OCTAVES of the logits' scale. Each score is within one millionth.
 * Not part of an inference and not counted in it. */
void scores_from_logits(const int8_t *logits, uint32_t count, int32_t least,
                        uint64_t octaves_per_step, uint32_t *scores);

#endif
