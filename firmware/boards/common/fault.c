/* Reports a fault over the serial line and stops: memory can no longer be trusted. */
#include <stdint.h>

#include "core.h"
#include "text.h"

#define FRAME_WORDS 8u
#define FRAME_LR    5u
#define FRAME_PC    6u
#define FIRST_OTHER 8u /* exception numbers below have a name */

extern uint32_t stack_bottom, stack_end; /* placed by sections.ld; `stack_end` is one past it */

void fault_handler(void);
void fault_report(const uint32_t *frame, uint32_t exception);

/* Keeps the stack pointer (there is one stack), then takes a fresh one: the old may be the fault.
 * Only instructions that Armv6-M has too; its branches do not reach far. */
__attribute__((naked)) void fault_handler(void) {
    __asm volatile("mov r0, sp\n\t"
                   "mrs r1, ipsr\n\t"
                   "ldr r2, =stack_top\n\t"
                   "mov sp, r2\n\t"
                   "ldr r2, =fault_report\n\t"
                   "bx  r2\n\t"
                   ".ltorg\n\t");
}

static const char *fault_name(uint32_t exception) {
    static const char *const names[FIRST_OTHER] = {
        "none", "reset", "NMI", "HardFault", "MemManage", "BusFault", "UsageFault", "SecureFault",
    };
    return (exception < FIRST_OTHER) ? names[exception] : "unexpected interrupt";
}

__attribute__((used, noreturn)) void fault_report(const uint32_t *frame, uint32_t exception) {
    const uint32_t status = core_tells_faults_apart ? SCB_FAULT_STATUS : 0u;
    const uintptr_t at = (uintptr_t)frame;
    uint32_t pc = 0;
    uint32_t lr = 0;
    const int frame_is_readable =
        at >= (uintptr_t)&stack_bottom && at + 4u * FRAME_WORDS <= (uintptr_t)&stack_end;
    if (frame_is_readable) {
        pc = frame[FRAME_PC];
        lr = frame[FRAME_LR];
    }
    interrupts_off();
    text_send("\r\ne-[fault ");
    text_send(frame_is_readable && (status & STACKING_FAILED) == 0u ? fault_name(exception)
                                                                    : "stack overflow");
    text_send(" pc=");
    text_send_word(pc);
    text_send(" lr=");
    text_send_word(lr);
    if (core_tells_faults_apart) {
        text_send(" cfsr=");
        text_send_word(status);
        text_send(" bfar=");
        text_send_word(SCB_BUS_FAULT);
    }
    text_send_line("]");
    for (;;) {
        wait_for_interrupt();
    }
}
