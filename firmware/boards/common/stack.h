/* The stack is painted before main: what still shows the paint was never used. */
#ifndef ENTRAIN_STACK_H
#define ENTRAIN_STACK_H

#include <stdint.h>

#define STACK_PAINT 0x5ec0a7edu /* not what data would be by chance */

extern uint32_t stack_bottom, stack_end; /* placed by sections.ld; `stack_end` is one past it */

/* Paints what lies below the stack pointer. Before interrupts are on: they use it too. */
static inline void stack_paint(void) {
    const uint32_t *pointer;
    __asm volatile("mov %0, sp" : "=r"(pointer));
    for (uint32_t *word = &stack_bottom; word < pointer; word++) {
        *word = STACK_PAINT;
    }
}

#endif
