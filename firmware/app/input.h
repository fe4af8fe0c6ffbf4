/* The model's input and the two ways to fill it: hexadecimal lines, and a checked binary block. */
#ifndef ENTRAIN_INPUT_H
#define ENTRAIN_INPUT_H

#include "block.h"

#include <stdbool.h>
#include <stdint.h>

/* The bytes the model reads; all zero before the first load. */
const int8_t *input_values(void);

/* True if the last load was complete. */
bool input_is_loaded(void);

/* Starts a load by hexadecimal lines. */
void input_begin_hex(void);

enum hex_state { HEX_MORE, HEX_DONE, HEX_NOT_EXPECTED, HEX_ODD, HEX_NO_DIGIT, HEX_TOO_MUCH };

/* Adds one line of digits. A line with an error in it changes nothing. */
enum hex_state input_add_hex(const char *digits);

/* Receives `length` bytes and their CRC-32; they are the model's input if the block is whole and of
 * its length. */
enum block_state input_receive_binary(uint32_t length);

#endif
