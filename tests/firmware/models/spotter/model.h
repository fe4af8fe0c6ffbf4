/* A hand-made model for spotters: its three scores are the newest features of three bands. */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>

#define MODEL_NAME              "hand-made"
#define MODEL_TASK              "hand-made"
#define MODEL_INPUT_BYTES       1960u
#define MODEL_OUTPUT_BYTES      4u
#define MODEL_OUTPUT_COUNT      4u
#define MODEL_OUTPUT_SCALE      0.05f
#define MODEL_OUTPUT_LEAST      (-128)
#define MODEL_OUTPUT_ZERO_POINT 0
#define MODEL_ARENA_BYTES       0u

void model_run(const int8_t *input, int8_t *output);

#endif
