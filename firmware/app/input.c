#include "input.h"

#include "model.h"
#include "text.h"

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

enum block_state input_receive_binary(uint32_t length) {
    loading_hex = false;
    loaded = false;
    const enum block_state state = block_receive(values, MODEL_INPUT_BYTES, length);
    loaded = (state == BLOCK_DONE && length == MODEL_INPUT_BYTES);
    return state;
}
