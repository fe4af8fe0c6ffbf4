/* A hand-made model that is the front end alone: one second of sound in, its log-mel values out. */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>

#define MODEL_NAME              "front-end"
#define MODEL_TASK              "front-end"
#define MODEL_CLIP_SAMPLES      16000u
#define MODEL_FRAMES            49u
#define MODEL_INPUT_BYTES       32000u /* int16, low byte first */
#define MODEL_OUTPUT_BYTES      3920u  /* int16, low byte first */
#define MODEL_OUTPUT_COUNT      3920u
#define MODEL_OUTPUT_SCALE      1.0f
#define MODEL_OUTPUT_LEAST      (-128)
#define MODEL_OUTPUT_ZERO_POINT 0
#define MODEL_ARENA_BYTES       0u

void model_run(const int8_t *input, int8_t *output);

#endif
