/* A hand-made model of the lowering's interface: one int8 linear layer, 32 inputs, 4 outputs. */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>

#define MODEL_NAME              "linear-32-4"
#define MODEL_TASK              "linear"
#define MODEL_INPUT_BYTES       32u
#define MODEL_OUTPUT_BYTES      4u
#define MODEL_OUTPUT_COUNT      4u
#define MODEL_OUTPUT_SCALE      0.125f
#define MODEL_OUTPUT_LEAST      (-128)
#define MODEL_OUTPUT_ZERO_POINT (-3)
#define MODEL_ARENA_BYTES       16u

extern const int8_t dense_weights[MODEL_OUTPUT_COUNT * MODEL_INPUT_BYTES];
extern const int32_t dense_bias[MODEL_OUTPUT_COUNT];

void model_run(const int8_t *input, int8_t *output);

#ifdef MODEL_TRACE
void model_trace(uint32_t layer, const void *values, uint32_t bytes);
#endif

#endif
