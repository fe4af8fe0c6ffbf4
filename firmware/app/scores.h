/* From integer logits to scores that add up to one. */
#ifndef ENTRAIN_SCORES_H
#define ENTRAIN_SCORES_H

#include <stdint.h>

/* Softmax of the dequantized logits. The zero point cancels: only differences of logits matter.
 * `count` >= 1, `scale` > 0; `least` is what the smallest logit can be, -128 for int8 and 0 for
 * uint8. Not part of an inference and not counted in it. */
void scores_from_logits(const int8_t *logits, uint32_t count, int32_t least, float scale,
                        float *scores);

#endif
