/* Written in assembly, so that every instruction can be counted by hand (see model.c). */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>

#define MODEL_NAME              "counted"
#define MODEL_TASK              "counted"
#define MODEL_INPUT_BYTES       4u
#define MODEL_OUTPUT_BYTES      4u
#define MODEL_OUTPUT_COUNT      4u
#define MODEL_OUTPUT_SCALE      1.0f
#define MODEL_OUTPUT_LEAST      (-128)
#define MODEL_OUTPUT_ZERO_POINT 0
#define MODEL_ARENA_BYTES       0u

void model_run(const int8_t *input, int8_t *output);

#endif
