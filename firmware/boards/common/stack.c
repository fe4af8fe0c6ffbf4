/* How deep the stack has been: down to the lowest word that no longer shows the paint. */
#include "stack.h"

#include "board.h"

uint32_t board_stack_reserved(void) {
    return (uint32_t)((uintptr_t)&stack_end - (uintptr_t)&stack_bottom);
}

uint32_t board_stack_used(void) {
    const volatile uint32_t *word = &stack_bottom;
    while (word < &stack_end && *word == STACK_PAINT) {
        word++;
    }
    return (uint32_t)((uintptr_t)&stack_end - (uintptr_t)word);
}
