/* board.h on this machine: the serial line is standard input and output. */
#define _POSIX_C_SOURCE 200809L

#include "board.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

const char board_name[] = "host";

static int next_byte = EOF;

void board_start(void) {
    (void)setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
}

bool board_receive(uint8_t *byte) {
    if (next_byte == EOF) {
        return false;
    }
    *byte = (uint8_t)next_byte;
    next_byte = EOF;
    return true;
}

bool board_receive_overran(void) {
    return false;
}

/* Standard input is waited for; its end ends the program. */
void board_wait(void) {
    (void)fflush(stdout);
    next_byte = getchar();
    if (next_byte == EOF) {
        exit(EXIT_SUCCESS);
    }
}

void board_send(const char *bytes, uint32_t length) {
    (void)fwrite(bytes, 1u, length, stdout);
}

uint64_t board_microseconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

void board_timestamp_pin(bool high) {
    (void)high;
}

uint32_t board_stack_reserved(void) {
    return 0;
}

uint32_t board_stack_used(void) {
    return 0;
}
