/* A 64-bit clock from the core's 24-bit SysTick: its wraps are counted by interrupt. */
#include "ticks.h"

#include "board_registers.h"
#include "cortex_m.h"

#define RELOAD  0x00ffffffu
#define PERIOD  0x01000000u
#define RUNNING 7u /* core clock, interrupt, enabled */

void systick_handler(void);

static volatile uint32_t wraps;

void ticks_start(void) {
    SYSTICK_RELOAD = RELOAD;
    SYSTICK_VALUE = 0;
    SYSTICK_CONTROL = RUNNING;
}

INTERRUPT_CODE void systick_handler(void) {
    wraps++;
}

uint64_t ticks_now(void) {
    uint32_t counted = 0;
    uint32_t value = 0;
    uint32_t pending = 0;
    do {
        counted = wraps;
        value = SYSTICK_VALUE;
        pending = SCB_INTERRUPT_STATE & SYSTICK_PENDING;
    } while (counted != wraps);
    /* The counter wrapped before it was read, but its interrupt has not been taken yet. */
    if (pending != 0u && value > RELOAD / 2u) {
        counted++;
    }
    return (uint64_t)counted * PERIOD + (RELOAD - value);
}
