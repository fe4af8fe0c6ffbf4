/* Bytes that follow a command on the serial line, and behind them their CRC-32, low byte first. */
#ifndef ENTRAIN_BLOCK_H
#define ENTRAIN_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCK_MOST_BYTES 0x1000000u

enum block_state { BLOCK_DONE, BLOCK_TOO_LONG, BLOCK_WRONG_CRC, BLOCK_TIMED_OUT };

/* Receives `length` bytes and their CRC-32. All of them are taken from the line, even if no more
 * than `capacity` have room, so that they are never read as commands. */
enum block_state block_receive(int8_t *into, uint32_t capacity, uint32_t length);

/* True if a block arrived as it was sent; otherwise sends the error. */
bool block_is_whole(enum block_state state);

#endif
