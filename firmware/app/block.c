#include "block.h"

#include "board.h"
#include "crc32.h"
#include "text.h"

#define PATIENCE_MICROSECONDS 2000000u
#define CRC_BYTES             4u

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

enum block_state block_receive(int8_t *into, uint32_t capacity, uint32_t length) {
    uint32_t crc = CRC32_START;
    uint32_t sent_crc = 0;
    uint8_t byte = 0;
    for (uint32_t i = 0; i < length; i++) {
        if (!receive_patiently(&byte)) {
            return BLOCK_TIMED_OUT;
        }
        crc = crc32_add(crc, byte);
        if (i < capacity) {
            into[i] = (int8_t)byte;
        }
    }
    for (uint32_t i = 0; i < CRC_BYTES; i++) {
        if (!receive_patiently(&byte)) {
            return BLOCK_TIMED_OUT;
        }
        sent_crc |= (uint32_t)byte << (8u * i);
    }
    if (length > capacity) {
        return BLOCK_TOO_LONG;
    }
    return (sent_crc == crc32_finish(crc)) ? BLOCK_DONE : BLOCK_WRONG_CRC;
}

bool block_is_whole(enum block_state state) {
    if (board_receive_overran() && state != BLOCK_DONE) {
        text_send_error("received bytes were lost");
        return false;
    }
    switch (state) {
    case BLOCK_DONE:
        return true;
    case BLOCK_WRONG_CRC:
        text_send_error("wrong CRC-32");
        return false;
    case BLOCK_TOO_LONG:
        text_send_error("the block is too long");
        return false;
    case BLOCK_TIMED_OUT:
    default:
        text_send_error("the block stopped short");
        return false;
    }
}
