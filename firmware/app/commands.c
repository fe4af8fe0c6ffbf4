#include "commands.h"

#include "block.h"
#include "board.h"
#include "inference.h"
#include "input.h"
#include "model.h"
#include "scores.h"
#include "text.h"

#include <stddef.h>

#define FIRMWARE_VERSION       "entrain 0.1.0"
#define MAX_INFERENCES         1000000u
#define DEFAULT_WARMUPS        10u
#define PRINTED_PER_LINE       8u
#define PIN_PULSE_MICROSECONDS 1u

static void command_name(const struct words *words) {
    (void)words;
    text_send("m-name-dut-[");
    text_send(board_name);
    text_send_line("]");
}

static void command_profile(const struct words *words) {
    (void)words;
    text_send_line("m-profile-[" FIRMWARE_VERSION " " MODEL_NAME "]");
    text_send_line("m-model-[" MODEL_TASK "]");
}

/* The pin's falling edge marks the moment for a meter; the printed time marks it for the host. */
static void command_timestamp(const struct words *words) {
    (void)words;
    const uint64_t now = board_microseconds();
    board_timestamp_pin(false);
    while (board_microseconds() - now <= PIN_PULSE_MICROSECONDS) {
    }
    board_timestamp_pin(true);
    text_send_number_line("m-lap-us-", now, "");
}

static void begin_hex_load(const char *length) {
    uint32_t bytes = 0;
    if (!text_parse_unsigned(length, UINT32_MAX, &bytes) || bytes != MODEL_INPUT_BYTES) {
        text_send_number_line("e-[the model takes ", MODEL_INPUT_BYTES, " bytes]");
        return;
    }
    inference_forget_output();
    input_begin_hex();
    text_send_number_line("m-[Expecting ", bytes, " bytes]");
}

static void print_input(void) {
    const int8_t *values = input_values();
    for (uint32_t i = 0; i < MODEL_INPUT_BYTES; i++) {
        text_send((i % PRINTED_PER_LINE == 0u) ? "m-buffer-" : "-");
        text_send_hex(&values[i], 1u);
        if (i % PRINTED_PER_LINE == PRINTED_PER_LINE - 1u || i == MODEL_INPUT_BYTES - 1u) {
            text_send_line("");
        }
    }
}

static void add_hex_line(const char *digits) {
    switch (input_add_hex(digits)) {
    case HEX_DONE:
        text_send_line("m-load-done");
        break;
    case HEX_NOT_EXPECTED:
        text_send_error("no load under way: db load N first");
        break;
    case HEX_ODD:
        text_send_error("odd number of hexadecimal digits");
        break;
    case HEX_NO_DIGIT:
        text_send_error("not a hexadecimal digit");
        break;
    case HEX_TOO_MUCH:
        text_send_error("more bytes than the model takes");
        break;
    case HEX_MORE:
    default:
        break;
    }
}

static void command_db(const struct words *words) {
    const bool load = text_equal(words->word[1], "load");
    if (load && words->count == 3u) {
        begin_hex_load(words->word[2]);
    } else if (load || words->count != 2u) {
        text_send_error("usage: db load N, db HEX or db print");
    } else if (text_equal(words->word[1], "print")) {
        print_input();
    } else {
        add_hex_line(words->word[1]);
    }
}

/* Receives the block that follows the command; true if it is now the model's input. */
static bool receive_input(const char *length) {
    uint32_t bytes = 0;
    if (!text_parse_unsigned(length, BLOCK_MOST_BYTES, &bytes)) {
        text_send_error("the length must be a number up to 16777216");
        return false;
    }
    inference_forget_output();
    const enum block_state state = input_receive_binary(bytes);
    if (state == BLOCK_TOO_LONG || (state == BLOCK_DONE && bytes != MODEL_INPUT_BYTES)) {
        text_send_number_line("e-[the model takes ", MODEL_INPUT_BYTES, " bytes]");
        return false;
    }
    return block_is_whole(state);
}

static void command_load(const struct words *words) {
    if (receive_input(words->word[1])) {
        text_send_line("m-load-done");
    }
}

static void command_raw(const struct words *words) {
    (void)words;
    if (!inference_has_output()) {
        text_send_error("nothing inferred yet");
        return;
    }
    text_send("m-raw-[");
    text_send_hex(inference_output(), MODEL_OUTPUT_BYTES);
    text_send_line("]");
}

static void command_classify(const struct words *words) {
    if (receive_input(words->word[1])) {
        inference_run();
        command_raw(words);
    }
}

static void command_results(const struct words *words) {
    static uint32_t scores[MODEL_OUTPUT_COUNT];
    (void)words;
    if (!inference_has_output()) {
        text_send_error("nothing inferred yet");
        return;
    }
    scores_from_logits(inference_output(), MODEL_OUTPUT_COUNT, MODEL_OUTPUT_LEAST,
                       SCORE_OCTAVES(MODEL_OUTPUT_SCALE), scores);
    text_send("m-results-[");
    for (uint32_t i = 0; i < MODEL_OUTPUT_COUNT; i++) {
        text_send((i == 0u) ? "" : ",");
        text_send_millionths(scores[i]);
    }
    text_send_line("]");
}

static void infer(uint32_t inferences, uint32_t warmups) {
    text_send_number_line("m-warmup-start-", warmups, "");
    for (uint32_t i = 0; i < warmups; i++) {
        inference_run();
    }
    text_send_line("m-warmup-done");
    text_send_number_line("m-infer-start-", inferences, "");
    /* Both times are sent afterwards: the serial line would take longer than many a model. */
    board_timestamp_pin(false);
    const uint64_t start = board_microseconds();
    for (uint32_t i = 0; i < inferences; i++) {
        inference_run();
    }
    const uint64_t end = board_microseconds();
    board_timestamp_pin(true);
    text_send_number_line("m-lap-us-", start, "");
    text_send_number_line("m-lap-us-", end, "");
    text_send_line("m-infer-done");
}

static void command_infer(const struct words *words) {
    uint32_t inferences = 1u;
    uint32_t warmups = DEFAULT_WARMUPS;
    bool understood = true;
    if (words->count > 1u) {
        understood = text_parse_unsigned(words->word[1], MAX_INFERENCES, &inferences);
    }
    if (words->count > 2u) {
        understood = text_parse_unsigned(words->word[2], MAX_INFERENCES, &warmups) && understood;
    }
    if (!understood || inferences == 0u) {
        text_send_error("usage: infer [N [W]], N from 1 and W from 0 to 1000000");
    } else if (!input_is_loaded()) {
        text_send_error("no input loaded");
    } else {
        infer(inferences, warmups);
        command_results(words);
    }
}

static void command_stack(const struct words *words) {
    (void)words;
    if (board_stack_reserved() == 0u) {
        text_send_error("this board does not watch its stack");
        return;
    }
    text_send("m-stack-[");
    text_send_unsigned(board_stack_used());
    text_send(",");
    text_send_unsigned(board_stack_reserved());
    text_send_line("]");
}

static void command_help(const struct words *words);

static const struct command commands[] = {
    {"name", 1u, 1u, "name", command_name},
    {"profile", 1u, 1u, "profile", command_profile},
    {"timestamp", 1u, 1u, "timestamp", command_timestamp},
    {"db", 2u, 3u, "db load N | db HEX | db print", command_db},
    {"infer", 1u, 3u, "infer [N [W]]", command_infer},
    {"results", 1u, 1u, "results", command_results},
    {"load", 2u, 2u, "load N, then N bytes and their CRC-32, low byte first", command_load},
    {"classify", 2u, 2u, "classify N, then as load; infers once and answers as raw",
     command_classify},
    {"raw", 1u, 1u, "raw", command_raw},
    {"stack", 1u, 1u, "stack", command_stack},
    {"help", 1u, 1u, "help", command_help},
};

static const struct command_set own_commands = {commands, sizeof commands / sizeof commands[0]};

static void send_usages(const struct command_set *set) {
    for (uint32_t i = 0; i < set->count; i++) {
        text_send("m-help-[");
        text_send(set->commands[i].usage);
        text_send_line("]");
    }
}

static void command_help(const struct words *words) {
    (void)words;
    send_usages(&own_commands);
    send_usages(&further_commands);
}

static const struct command *find(const struct command_set *set, const char *name) {
    for (uint32_t i = 0; i < set->count; i++) {
        if (text_equal(name, set->commands[i].name)) {
            return &set->commands[i];
        }
    }
    return NULL;
}

void commands_execute(const struct words *words) {
    if (words->count == 0u) {
        return;
    }
    const struct command *command = find(&own_commands, words->word[0]);
    if (command == NULL) {
        command = find(&further_commands, words->word[0]);
    }
    if (command == NULL) {
        text_send_error("unknown command");
    } else if (words->count < command->fewest_words || words->count > command->most_words) {
        text_send("e-[usage: ");
        text_send(command->usage);
        text_send_line("]");
    } else {
        command->execute(words);
    }
}
