#include "scores.h"

#include "exponential.h"

/* The number that a byte holds, read as signed where `least` is -128 and as unsigned where it is 0.
 */
static int32_t value_of(int8_t byte, int32_t least) {
    return (byte < least) ? (byte + 256) : byte;
}

void scores_from_logits(const int8_t *logits, uint32_t count, int32_t least, float scale,
                        float *scores) {
    int32_t largest = value_of(logits[0], least);
    float sum = 0.0f;
    for (uint32_t i = 1; i < count; i++) {
        const int32_t logit = value_of(logits[i], least);
        largest = (logit > largest) ? logit : largest;
    }
    for (uint32_t i = 0; i < count; i++) {
        scores[i] = exponential_of_negative(scale * (float)(value_of(logits[i], least) - largest));
        sum += scores[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        scores[i] /= sum;
    }
}
