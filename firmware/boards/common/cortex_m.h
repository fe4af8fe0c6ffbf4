/* The core's own registers, as far as they are used here (Armv6-M, Armv7-M and Armv8-M manuals). */
#ifndef ENTRAIN_CORTEX_M_H
#define ENTRAIN_CORTEX_M_H

#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define SYSTICK_CONTROL REGISTER(0xE000E010u)
#define SYSTICK_RELOAD  REGISTER(0xE000E014u)
#define SYSTICK_VALUE   REGISTER(0xE000E018u)

#define NVIC_ENABLE(number)      REGISTER(0xE000E100u + 4u * ((number) / 32u))
#define NVIC_SET_PENDING(number) REGISTER(0xE000E200u + 4u * ((number) / 32u))
#define NVIC_BIT(number)         (1u << ((number) % 32u))

#define SCB_INTERRUPT_STATE REGISTER(0xE000ED04u)
#define SCB_CONFIGURATION   REGISTER(0xE000ED14u)
#define SCB_HANDLER_CONTROL REGISTER(0xE000ED24u)
#define SCB_FAULT_STATUS    REGISTER(0xE000ED28u)
#define SCB_BUS_FAULT       REGISTER(0xE000ED38u)
#define SCB_COPROCESSORS    REGISTER(0xE000ED88u)

/* The memory protection unit of Armv7-M. */
#define MPU_CONTROL    REGISTER(0xE000ED94u)
#define MPU_NUMBER     REGISTER(0xE000ED98u)
#define MPU_BASE       REGISTER(0xE000ED9Cu)
#define MPU_ATTRIBUTES REGISTER(0xE000EDA0u)

#define MPU_ON_WITH_DEFAULT_MAP 5u
#define MPU_MEGABYTE            0x100000u
#define MPU_NO_ACCESS           (1u << 28) /* nor execution */
#define MPU_SIZE_MEGABYTE       (19u << 1)
#define MPU_REGION_ON           1u

#define SYSTICK_PENDING    (1u << 26) /* in SCB_INTERRUPT_STATE */
#define TRAP_UNALIGNED     (1u << 3)  /* in SCB_CONFIGURATION */
#define FAULTS_TOLD_APART  (7u << 16) /* memory, bus and usage faults, in SCB_HANDLER_CONTROL */
#define COPROCESSORS_10_11 (15u << 20)
#define STACKING_FAILED    ((1u << 4) | (1u << 12) | (1u << 20)) /* in SCB_FAULT_STATUS */

/* Interrupt code lies together in one range of addresses, so that the instruction counter can
 * leave it out: whatever a handler calls must be inline or carry this too. */
#define INTERRUPT_CODE __attribute__((section(".interrupt_code")))

static inline void interrupts_off(void) {
    __asm volatile("cpsid i" ::: "memory");
}

static inline void interrupts_on(void) {
    __asm volatile("cpsie i" ::: "memory");
}

/* With interrupts off it still wakes when one is pending. */
static inline void wait_for_interrupt(void) {
    __asm volatile("dsb\n\twfi" ::: "memory");
}

static inline void barrier(void) {
    __asm volatile("dsb\n\tisb" ::: "memory");
}

#endif
