#include "input.h"

#include "board.h"
#include "crc32.h"
#include "model.h"
#include "text.h"

#define PATIENCE_MICROSECONDS 2000000u
#define CRC_BYTES             4u

/* Aligned for the widest vector loads of any core. */
static _Alignas(16) int8_t values[MODEL_INPUT_BYTES];
static uint32_t received;
static bool loading_hex;
static bool loaded;

const int8_t *input_values(void) {
    return values;
}

bool input_is_loaded(void) {
    return loaded;
}

void input_begin_hex(void) {
    received = 0;
    loading_hex = true;
    loaded = false;
}

static enum hex_state check_hex(const char *digits, uint32_t *bytes) {
    uint32_t count = 0;
    for (; digits[count] != '\0'; count++) {
        if (text_hex_digit(digits[count]) < 0) {
            return HEX_NO_DIGIT;
        }
    }
    *bytes = count / 2u;
    if (count % 2u != 0u) {
        return HEX_ODD;
    }
    return (*bytes > MODEL_INPUT_BYTES - received) ? HEX_TOO_MUCH : HEX_MORE;
}

enum hex_state input_add_hex(const char *digits) {
    uint32_t bytes = 0;
    if (!loading_hex) {
        return HEX_NOT_EXPECTED;
    }
    const enum hex_state state = check_hex(digits, &bytes);
    if (state != HEX_MORE) {
        return state;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        const int high = text_hex_digit(digits[2u * i]);
        const int low = text_hex_digit(digits[2u * i + 1u]);
        values[received] = (int8_t)(uint8_t)(high * 16 + low);
        received++;
    }
    loaded = (received == MODEL_INPUT_BYTES);
    loading_hex = !loaded;
    return loaded ? HEX_DONE : HEX_MORE;
}

/* Waits for the next byte; false if the line stays silent. */
static bool receive_patiently(uint8_t *byte) {
    if (board_receive(byte)) {
        return true;
    }
    const uint64_t start = board_microseconds();
    while (board_microseconds() - start < PATIENCE_MICROSECONDS) {
        board_wait();
        if (board_receive(byte)) {
            return true;
        }
    }
    return false;
}

enum binary_state input_receive_binary(uint32_t length) {
    uint32_t crc = CRC32_START;
    uint32_t sent_crc = 0;
    uint8_t byte = 0;
    loading_hex = false;
    loaded = false;
    for (uint32_t i = 0; i < length; i++) {
        if (!receive_patiently(&byte)) {
            return BINARY_TIMED_OUT;
        }
        crc = crc32_add(crc, byte);
        if (i < MODEL_INPUT_BYTES) {
            values[i] = (int8_t)byte;
        }
    }
    for (uint32_t i = 0; i < CRC_BYTES; i++) {
        if (!receive_patiently(&byte)) {
            return BINARY_TIMED_OUT;
        }
        sent_crc |= (uint32_t)byte << (8u * i);
    }
    if (length != MODEL_INPUT_BYTES) {
        return BINARY_WRONG_LENGTH;
    }
    loaded = (sent_crc == crc32_finish(crc));
    return loaded ? BINARY_DONE : BINARY_WRONG_CRC;
}
