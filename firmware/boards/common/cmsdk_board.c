/* board.h for Arm's MPS boards: the UART of the Cortex-M System Design Kit, and a GPIO pin. */
#include "board.h"
#include "board_registers.h"
#include "cortex_m.h"
#include "ticks.h"

#define UART_DATA      REGISTER(BOARD_UART + 0x00u)
#define UART_STATE     REGISTER(BOARD_UART + 0x04u)
#define UART_CONTROL   REGISTER(BOARD_UART + 0x08u)
#define UART_INTERRUPT REGISTER(BOARD_UART + 0x0Cu)
#define UART_DIVIDER   REGISTER(BOARD_UART + 0x10u)

#define STATE_TRANSMIT_FULL 1u
#define STATE_RECEIVE_FULL  2u
#define STATE_OVERRAN       8u
#define CONTROL_RUNNING     3u /* transmitter and receiver */
#define CONTROL_RECEIVE_INT 8u
#define INTERRUPT_RECEIVE   2u

#define GPIO_OUTPUT        REGISTER(BOARD_GPIO + 0x04u)
#define GPIO_OUTPUT_ENABLE REGISTER(BOARD_GPIO + 0x10u)
#define TIMESTAMP_PIN      1u

#define BAUD                  115200u
#define TICKS_PER_MICROSECOND (BOARD_HZ / 1000000u)

#define RING_CAPACITY 1024u /* a power of two */

void uart_receive_handler(void);

/* The handler alone moves `written`, the application alone moves `taken`. */
static uint8_t ring[RING_CAPACITY];
static volatile uint32_t written;
static volatile uint32_t taken;
static volatile bool paused;

const char board_name[] = BOARD_NAME;

void board_start(void) {
    ticks_start();
    UART_DIVIDER = BOARD_HZ / BAUD;
    UART_CONTROL = CONTROL_RUNNING | CONTROL_RECEIVE_INT;
    NVIC_ENABLE(BOARD_UART_RECEIVE_INTERRUPT) = NVIC_BIT(BOARD_UART_RECEIVE_INTERRUPT);
    GPIO_OUTPUT_ENABLE = TIMESTAMP_PIN;
    board_timestamp_pin(true);
}

/* With the ring full the byte stays in the UART: a line with flow control (an emulator's, a
 * USB bridge's) then holds back the rest, and any other sets the overrun flag. */
INTERRUPT_CODE void uart_receive_handler(void) {
    UART_INTERRUPT = INTERRUPT_RECEIVE; /* first, so that a byte arriving below raises it anew */
    while ((UART_STATE & STATE_RECEIVE_FULL) != 0u) {
        const uint32_t at = written;
        if (at - taken == RING_CAPACITY) {
            paused = true;
            UART_CONTROL = CONTROL_RUNNING;
            return;
        }
        ring[at % RING_CAPACITY] = (uint8_t)UART_DATA;
        written = at + 1u;
    }
}

static void resume_reception(void) {
    paused = false;
    UART_CONTROL = CONTROL_RUNNING | CONTROL_RECEIVE_INT;
    NVIC_SET_PENDING(BOARD_UART_RECEIVE_INTERRUPT) = NVIC_BIT(BOARD_UART_RECEIVE_INTERRUPT);
}

bool board_receive(uint8_t *byte) {
    const uint32_t at = taken;
    if (at == written) {
        return false;
    }
    *byte = ring[at % RING_CAPACITY];
    taken = at + 1u;
    if (paused) {
        resume_reception();
    }
    return true;
}

bool board_receive_overran(void) {
    const bool overran = (UART_STATE & STATE_OVERRAN) != 0u;
    if (overran) {
        UART_STATE = STATE_OVERRAN;
    }
    return overran;
}

void board_wait(void) {
    interrupts_off(); /* or a byte could arrive between the look and the sleep */
    if (taken == written) {
        wait_for_interrupt();
    }
    interrupts_on();
}

void board_send(const char *bytes, uint32_t length) {
    for (uint32_t i = 0; i < length; i++) {
        while ((UART_STATE & STATE_TRANSMIT_FULL) != 0u) {
        }
        UART_DATA = (uint8_t)bytes[i];
    }
}

uint64_t board_microseconds(void) {
    return ticks_now() / TICKS_PER_MICROSECOND;
}

void board_timestamp_pin(bool high) {
    GPIO_OUTPUT = high ? TIMESTAMP_PIN : 0u;
}
