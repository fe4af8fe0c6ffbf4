/* What a board gives to the application. One implementation a board, and one for the host. */
#ifndef ENTRAIN_BOARD_H
#define ENTRAIN_BOARD_H

#include <stdbool.h>
#include <stdint.h>

/* The board's name, as in its board.toml. */
extern const char board_name[];

/* Starts the serial line, the clock and the timestamp pin (high). */
void board_start(void);

/* Takes the oldest received byte; false if none is waiting. */
bool board_receive(uint8_t *byte);

/* True once after bytes were lost because nobody took them in time. */
bool board_receive_overran(void);

/* Sleeps until a byte is waiting or, at the latest, for about a second. */
void board_wait(void);

/* Sends bytes; returns when the last one is on its way. */
void board_send(const char *bytes, uint32_t length);

/* Time since board_start in microseconds; never goes back, never wraps. */
uint64_t board_microseconds(void);

/* Bytes of stack: all there are, and the most ever in use since the start. Both are 0 where nobody
 * watches it. */
uint32_t board_stack_reserved(void);
uint32_t board_stack_used(void);

/* Drives the pin that an energy meter watches: low while inferences are timed. */
void board_timestamp_pin(bool high);

#endif
