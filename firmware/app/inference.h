/* One inference between the marks that the instruction counter watches. */
#ifndef ENTRAIN_INFERENCE_H
#define ENTRAIN_INFERENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Runs the model on the loaded input. The counter's window opens at inference_begin and closes at
 * inference_end; neither they nor inference_run itself are counted. */
void inference_run(void);

/* A new input makes the last output somebody else's: until the next inference there is none. */
void inference_forget_output(void);

/* False until the first inference of the loaded input. */
bool inference_has_output(void);

/* MODEL_OUTPUT_BYTES of the last inference; the first MODEL_OUTPUT_COUNT are the scores. */
const int8_t *inference_output(void);

void inference_begin(void);
void inference_end(void);

#endif
