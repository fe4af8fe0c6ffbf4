#include "text.h"

#include "board.h"

#define DECIMAL_DIGITS 20u /* of the largest 64-bit number */
#define MILLION        1000000u
#define MILLION_DIGITS 6u

static const char hex_digits[] = "0123456789abcdef";

void text_send(const char *text) {
    uint32_t length = 0;
    while (text[length] != '\0') {
        length++;
    }
    board_send(text, length);
}

void text_send_line(const char *text) {
    text_send(text);
    board_send("\r\n", 2u);
}

void text_send_unsigned(uint64_t value) {
    char digits[DECIMAL_DIGITS];
    uint32_t first = DECIMAL_DIGITS;
    do {
        first--;
        digits[first] = (char)('0' + (char)(value % 10u));
        value /= 10u;
    } while (value != 0u);
    board_send(&digits[first], DECIMAL_DIGITS - first);
}

void text_send_hex(const void *bytes, uint32_t count) {
    const uint8_t *next = bytes;
    for (uint32_t i = 0; i < count; i++) {
        const char pair[2] = {hex_digits[next[i] >> 4], hex_digits[next[i] & 15u]};
        board_send(pair, 2u);
    }
}

void text_send_word(uint32_t word) {
    const uint8_t big_endian[4] = {(uint8_t)(word >> 24), (uint8_t)(word >> 16),
                                   (uint8_t)(word >> 8), (uint8_t)word};
    text_send("0x");
    text_send_hex(big_endian, sizeof big_endian);
}

void text_send_millionths(uint32_t value) {
    uint32_t rest = value;
    char digits[MILLION_DIGITS];
    text_send_unsigned(rest / MILLION);
    for (uint32_t i = MILLION_DIGITS; i > 0u; i--) {
        digits[i - 1u] = (char)('0' + (char)(rest % 10u));
        rest /= 10u;
    }
    text_send(".");
    board_send(digits, MILLION_DIGITS);
}

void text_send_error(const char *message) {
    text_send("e-[");
    text_send(message);
    text_send_line("]");
}

void text_send_number_line(const char *prefix, uint64_t value, const char *suffix) {
    text_send(prefix);
    text_send_unsigned(value);
    text_send_line(suffix);
}

bool text_parse_unsigned(const char *word, uint32_t limit, uint32_t *value) {
    uint64_t sum = 0;
    if (word[0] == '\0') {
        return false;
    }
    for (uint32_t i = 0; word[i] != '\0'; i++) {
        if (word[i] < '0' || word[i] > '9') {
            return false;
        }
        sum = sum * 10u + (uint64_t)(word[i] - '0');
        if (sum > limit) {
            return false;
        }
    }
    *value = (uint32_t)sum;
    return true;
}

int text_hex_digit(char digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    if (digit >= 'A' && digit <= 'F') {
        return digit - 'A' + 10;
    }
    return -1;
}

bool text_equal(const char *left, const char *right) {
    uint32_t i = 0;
    while (left[i] != '\0' && left[i] == right[i]) {
        i++;
    }
    return left[i] == right[i];
}
