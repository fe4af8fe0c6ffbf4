#include "model.h"

#define UNMAPPED_ADDRESS 0xf0000000u

static __attribute__((noinline)) void layer_unmapped(void) {
    *(volatile uint32_t *)UNMAPPED_ADDRESS = 1u;
}

static __attribute__((noinline)) void layer_undefined(void) {
    __asm volatile("udf #0");
}

/* Recursion that no compiler can turn into a loop. */
static __attribute__((noinline)) int32_t layer_recursive(int32_t depth) {
    volatile int32_t kept[16] = {depth};
    return (depth == 0) ? 0 : layer_recursive(depth - 1) + kept[depth % 16];
}

/* A half word at an odd address, as no compiler reads one unasked. */
static __attribute__((noinline)) int32_t layer_unaligned(const int8_t *input) {
    return *(const volatile int16_t *)(uintptr_t)(input + 1);
}

void model_run(const int8_t *input, int8_t *output) {
    switch (input[0]) {
    case 1:
        layer_unmapped();
        break;
    case 2:
        layer_undefined();
        break;
    case 3:
        output[0] = (int8_t)layer_recursive(200);
        break;
    case 4:
        for (;;) {
        }
    case 5:
        output[0] = (int8_t)(input[0] + layer_unaligned(input));
        break;
    default:
        output[0] = input[0];
        break;
    }
}
