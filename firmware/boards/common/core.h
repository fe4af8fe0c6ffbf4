/* What one Cortex-M core has and another lacks, under one name each; which, is decided here alone.
 *
 *   Armv6-M (Cortex-M0)      one fault for everything, nothing to guard the stack with
 *   Armv7-M (Cortex-M3, M4)  faults told apart, memory protection unit
 *   Armv8-M (Cortex-M55)     faults told apart, stack limit register */
#ifndef ENTRAIN_CORE_H
#define ENTRAIN_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "cortex_m.h"

#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
/* Floats and vectors are a coprocessor that is off after reset. */
static inline void core_enable_floats(void) {
    SCB_COPROCESSORS |= COPROCESSORS_10_11;
}
#else
static inline void core_enable_floats(void) {}
#endif

#if __ARM_ARCH_ISA_THUMB < 2

static const bool core_tells_faults_apart = false;

/* A Cortex-M0 refuses every unaligned access, and writing this changes nothing there. A larger core
 * that runs its code is made to refuse them too. */
static inline void core_prepare_faults(void) {
    SCB_CONFIGURATION |= TRAP_UNALIGNED;
}

/* Below the stack, the lowest in the RAM, must be nothing: then the bus refuses the overflow. */
static inline void core_guard_stack(const uint32_t *bottom) {
    (void)bottom;
}

#else

static const bool core_tells_faults_apart = true;

static inline void core_prepare_faults(void) {
    SCB_HANDLER_CONTROL |= FAULTS_TOLD_APART;
}

/* Makes an overflowing stack fault at once: below the RAM a bus may swallow what is written. */
static inline void core_guard_stack(const uint32_t *bottom) {
#if __ARM_ARCH >= 8
    __asm volatile("msr msplim, %0" ::"r"(bottom));
#else
    MPU_NUMBER = 0;
    MPU_BASE = (uint32_t)bottom - MPU_MEGABYTE; /* aligned to its size, as RAM is */
    MPU_ATTRIBUTES = MPU_NO_ACCESS | MPU_SIZE_MEGABYTE | MPU_REGION_ON;
    MPU_CONTROL = MPU_ON_WITH_DEFAULT_MAP;
#endif
}

#endif

#endif
