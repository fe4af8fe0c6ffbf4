#include "inference.h"

#include "input.h"
#include "model.h"

#define SEPARATE_FUNCTION __attribute__((noinline))

static _Alignas(16) int8_t output[MODEL_OUTPUT_BYTES];
static bool has_output;

/* The marks do nothing, but the compiler must neither drop them, move work across them, nor find
 * out that they are alike and merge them: hence the differing empty assembly. */
SEPARATE_FUNCTION void inference_begin(void) {
    __asm volatile("/* window opens */" ::: "memory");
}

SEPARATE_FUNCTION void inference_end(void) {
    __asm volatile("/* window closes */" ::: "memory");
}

SEPARATE_FUNCTION void inference_run(void) {
    const int8_t *input = input_values();
    inference_begin();
    model_run(input, output);
    inference_end();
    has_output = true;
}

void inference_forget_output(void) {
    has_output = false;
}

bool inference_has_output(void) {
    return has_output;
}

const int8_t *inference_output(void) {
    return output;
}
