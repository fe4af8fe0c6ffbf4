#include "exponential.h"

#include <stdint.h>

#define SMALLEST_ARGUMENT (-87.0f)
#define LOG2_E            1.44269504f
#define LN_2_HIGH         0.693359375f /* exact in 10 bits, so n * LN_2_HIGH is exact */
#define LN_2_LOW          (-2.12194440e-4f)

/* 2 to the power n for -126 <= n <= 0, made from the exponent bits. */
static float power_of_two(int32_t n) {
    union {
        uint32_t bits;
        float value;
    } power = {.bits = (uint32_t)(n + 127) << 23};
    return power.value;
}

float exponential_of_negative(float x) {
    if (!(x >= SMALLEST_ARGUMENT)) {
        return 0.0f;
    }
    /* exp(x) = 2^n exp(r) with |r| <= ln(2) / 2; the series to the sixth power is enough there. */
    const int32_t n = (int32_t)(x * LOG2_E - 0.5f);
    const float r = (x - (float)n * LN_2_HIGH) - (float)n * LN_2_LOW;
    float series = 1.0f / 720.0f;
    series = series * r + 1.0f / 120.0f;
    series = series * r + 1.0f / 24.0f;
    series = series * r + 1.0f / 6.0f;
    series = series * r + 0.5f;
    series = series * r + 1.0f;
    series = series * r + 1.0f;
    return series * power_of_two(n);
}
