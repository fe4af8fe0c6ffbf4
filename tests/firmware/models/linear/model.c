#include "model.h"

#define SHIFT 6

static _Alignas(16) int32_t arena[MODEL_OUTPUT_COUNT];

static __attribute__((noinline)) void layer_dense(const int8_t *input, int32_t *sums) {
    for (uint32_t row = 0; row < MODEL_OUTPUT_COUNT; row++) {
        int32_t sum = dense_bias[row];
        for (uint32_t i = 0; i < MODEL_INPUT_BYTES; i++) {
            sum += input[i] * dense_weights[row * MODEL_INPUT_BYTES + i];
        }
        sums[row] = sum;
    }
}

static __attribute__((noinline)) void layer_requantize(const int32_t *sums, int8_t *output) {
    for (uint32_t row = 0; row < MODEL_OUTPUT_COUNT; row++) {
        int32_t value = ((sums[row] + (1 << (SHIFT - 1))) >> SHIFT) + MODEL_OUTPUT_ZERO_POINT;
        value = (value < -128) ? -128 : value;
        output[row] = (int8_t)((value > 127) ? 127 : value);
    }
}

void model_run(const int8_t *input, int8_t *output) {
    layer_dense(input, arena);
#ifdef MODEL_TRACE
    model_trace(0, arena, sizeof arena);
#endif
    layer_requantize(arena, output);
#ifdef MODEL_TRACE
    model_trace(1, output, MODEL_OUTPUT_COUNT);
#endif
}
