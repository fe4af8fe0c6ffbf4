/* Numbers and lines to and from the serial line, without printf. */
#ifndef ENTRAIN_TEXT_H
#define ENTRAIN_TEXT_H

#include <stdbool.h>
#include <stdint.h>

void text_send(const char *text);
void text_send_line(const char *text);
void text_send_unsigned(uint64_t value);
void text_send_hex(const void *bytes, uint32_t count);
void text_send_word(uint32_t word);

/* A number of millionths, with six decimals. */
void text_send_millionths(uint32_t value);

/* The line e-[message]. */
void text_send_error(const char *message);

/* The line PREFIX value SUFFIX. */
void text_send_number_line(const char *prefix, uint64_t value, const char *suffix);

/* Reads a whole word as a decimal number of at most `limit`; false if it is anything else. */
bool text_parse_unsigned(const char *word, uint32_t limit, uint32_t *value);

/* The value of a hexadecimal digit, or -1. */
int text_hex_digit(char digit);

bool text_equal(const char *left, const char *right);

#endif
