/* From reset to main: memory, coprocessors, faults; and the vector table. */
#include <stdint.h>

#include "board_registers.h"
#include "core.h"
#include "stack.h"

/* Placed by sections.ld. */
extern uint32_t data_load, data_start, data_end, bss_start, bss_end;
extern void stack_top(void); /* an address; declared as a function to suit the vector table */

int main(void);
void reset_handler(void);
void fault_handler(void);
void systick_handler(void);
void uart_receive_handler(void);

typedef void (*vector)(void);

__attribute__((section(".vectors"),
               used)) static const vector vectors[16u + BOARD_UART_RECEIVE_INTERRUPT + 1u] = {
    [0] = stack_top,
    [1] = reset_handler,
    [2] = fault_handler,
    [3] = fault_handler,
    [4] = fault_handler,
    [5] = fault_handler,
    [6] = fault_handler,
    [7] = fault_handler,
    [11] = fault_handler,
    [12] = fault_handler,
    [14] = fault_handler,
    [15] = systick_handler,
    [16u + BOARD_UART_RECEIVE_INTERRUPT] = uart_receive_handler,
};

void reset_handler(void) {
    const uint32_t *from = &data_load;
    for (uint32_t *to = &data_start; to < &data_end; to++) {
        *to = *from;
        from++;
    }
    for (uint32_t *to = &bss_start; to < &bss_end; to++) {
        *to = 0;
    }
    core_enable_floats();
    core_prepare_faults();
    core_guard_stack(&stack_bottom);
    stack_paint();
    barrier();
    (void)main();
    for (;;) {
        wait_for_interrupt();
    }
}
