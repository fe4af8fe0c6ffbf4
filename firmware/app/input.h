/* The model's input and the two ways to fill it: hexadecimal lines, and a checked binary block. */
#ifndef ENTRAIN_INPUT_H
#define ENTRAIN_INPUT_H

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

enum binary_state { BINARY_DONE, BINARY_WRONG_LENGTH, BINARY_WRONG_CRC, BINARY_TIMED_OUT };

/* Receives `length` bytes and their CRC-32, low byte first. All of them are taken from the line
 * even if the length is not the model's, so that they are never read as commands. */
enum binary_state input_receive_binary(uint32_t length);

#endif
