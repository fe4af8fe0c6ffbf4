/* Waits for commands on the serial line and answers them, for ever. */
#include "board.h"
#include "commands.h"
#include "line.h"
#include "text.h"

static void answer(struct line *line, enum line_state state) {
    if (board_receive_overran()) {
        text_send_error("received bytes were lost");
    } else if (state == LINE_TOO_LONG) {
        text_send_error("command longer than 80 characters");
    } else if (state == LINE_UNPRINTABLE) {
        text_send_error("unprintable character in a command");
    } else {
        const struct words words = line_split(line);
        commands_execute(&words);
    }
    text_send_line("m-ready");
}

int main(void) {
    static struct line line;
    board_start();
    line_clear(&line);
    text_send_line("m-timestamp-mode-performance");
    text_send_line("m-init-done");
    text_send_line("m-ready");
    for (;;) {
        uint8_t byte = 0;
        if (!board_receive(&byte)) {
            board_wait();
            continue;
        }
        const enum line_state state = line_add(&line, byte);
        if (state != LINE_OPEN) {
            answer(&line, state);
            line_clear(&line);
        }
    }
}
