#include "model.h"

/* 1 + 2 * 100000 + 1 instructions: long enough to be interrupted by the clock and the UART. */
__attribute__((naked, noinline, used)) static void layer_loop(void) {
    __asm volatile("ldr  r3, =100000\n"
                   "1:\n\t"
                   "subs r3, r3, #1\n\t"
                   "bne  1b\n\t"
                   "bx   lr\n\t"
                   ".ltorg\n\t");
}

/* 3 + first input byte * 3 + 1 instructions. */
__attribute__((naked, noinline, used)) static void layer_data_dependent(void) {
    __asm volatile("ldrb  r3, [r0]\n\t"
                   "cmp   r3, #0\n\t"
                   "beq   2f\n"
                   "1:\n\t"
                   "subs  r3, r3, #1\n\t"
                   "nop\n\t"
                   "bne   1b\n"
                   "2:\n\t"
                   "bx    lr\n\t");
}

/* 6 instructions of its own; the output is the input. */
__attribute__((naked)) void model_run(const int8_t *input, int8_t *output) {
    (void)input;
    (void)output;
    __asm volatile("push {r4, lr}\n\t"
                   "ldr  r3, [r0]\n\t"
                   "str  r3, [r1]\n\t"
                   "bl   layer_data_dependent\n\t"
                   "bl   layer_loop\n\t"
                   "pop  {r4, pc}\n\t");
}
