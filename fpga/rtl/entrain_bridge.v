// A block behind a serial line that speaks the firmware's grammar: lines in, texts out.
//
// An input is the bytes of one sequence (see entrain_feeder), an output its contexts. What the
// firmware answers is answered word for word; the texts lie in a memory outside. A command is executed
// when its '%' comes; what comes meanwhile waits.
module entrain_bridge #(
    parameter CLOCKS_PER_BIT = 104,
    parameter [7:0] LAST_TICK = 8'h11,  // decimal digits: cycles of a microsecond, less one
    parameter PATIENCE = 24000000,  // cycles for which a block's next byte is waited for
    parameter TOKENS = 64,
    parameter QUERIES = 64,
    // bytes of a vector, and of a transfer
    parameter ANCHOR = 2,
    parameter ANCHOR_LANES = 1,
    parameter HEAD = 16,
    parameter HEAD_LANES = 4,
    parameter VALUE = 16,
    parameter VALUE_LANES = 1,
    parameter CONTEXT_LANES = 1,
    parameter MOST_LANES = 4,
    parameter [31:0] DIGITS = 32'h3200,  // the input's bytes as decimal digits
    parameter TEXT_BITS = 11,
    parameter [TEXT_BITS-1:0] READY_AT = 0,
    parameter [TEXT_BITS-1:0] NEXT_LINE_AT = 0,
    parameter [TEXT_BITS-1:0] DASH_AT = 0
) (
    input wire clk,
    input wire rst,
    input wire uart_rx,
    output wire uart_tx,
    output wire busy,  // 0 while nothing happens unless a byte comes
    output wire [TEXT_BITS-1:0] text_address,
    input wire [7:0] text_character,
    output wire [8*MOST_LANES-1:0] feed_data,
    output wire [3:0] feed_valid,
    input wire [3:0] feed_ready,
    input wire [8*CONTEXT_LANES-1:0] contexts_data,
    input wire contexts_valid,
    output wire contexts_ready
);
    localparam IN_BYTES = TOKENS * (ANCHOR + HEAD + VALUE) + QUERIES * HEAD;
    localparam OUT_BYTES = QUERIES * VALUE;
    localparam IN_BITS = $clog2(IN_BYTES + 1);
    localparam OUT_BITS = OUT_BYTES > 1 ? $clog2(OUT_BYTES) : 1;
    localparam TIMER_BITS = $clog2(PATIENCE + 1);

    localparam [31:0] MOST_BYTES = 32'h16777216;
    localparam [31:0] CRC_WHOLE = 32'hdebb20e3;  // the remainder of any block with its CRC-32

    localparam TIME_DIGITS = 10;  // of microseconds

    // the texts, in the order of their memory
    localparam [5:0] BOOT = 0, READY = 1, NAME = 2, PROFILE = 3, EXPECTING = 4, LOADED = 5,
        INFER = 6, RESULTS = 7, RAW = 8, CLASSIFIED = 9, PRINT = 10, STACK = 11, HELP = 12,
        UNKNOWN = 13, TOO_LONG = 14, UNPRINTABLE = 15, LOST = 16, DB_USAGE = 17, INFER_USAGE = 18,
        WRONG_LENGTH = 19, NOT_EXPECTED = 20, ODD_DIGITS = 21, NO_DIGIT = 22, TOO_MUCH = 23,
        NO_INPUT = 24, NO_OUTPUT = 25, BAD_LENGTH = 26, WRONG_CRC = 27, STOPPED_SHORT = 28,
        USAGES = 32;  // of the commands in their order
    // the commands, in entrain_line's order
    localparam NAME_C = 0, PROFILE_C = 1, DB_C = 2, INFER_C = 3, RESULTS_C = 4, LOAD_C = 5,
        CLASSIFY_C = 6, RAW_C = 7, STACK_C = 8, HELP_C = 9;

    localparam [2:0] START = 0, LINE = 1, EXECUTE = 2, ANSWER = 3, BLOCK = 4, CHECKSUM = 5,
        BLOCK_END = 6;
    reg [2:0] state;
    reg printing;  // the printer was started
    wire printer_busy;
    wire answered = state == ANSWER && printing && !printer_busy;

    // bytes in
    wire [7:0] received_data, waiting_data;
    wire received_valid, waiting_valid, lost;
    wire takes_line = state == LINE && waiting_valid;
    wire takes_block = state == BLOCK && waiting_valid;
    wire ends_line = takes_line && waiting_data == "%";
    wire clear_lost;

    entrain_uart_receiver #(
        .CLOCKS(CLOCKS_PER_BIT)
    ) receiver (
        .clk(clk), .rst(rst), .line(uart_rx), .data(received_data), .valid(received_valid)
    );

    entrain_fifo waiting (
        .clk(clk), .rst(rst),
        .in_data(received_data), .in_valid(received_valid),
        .out_data(waiting_data), .out_valid(waiting_valid), .out_ready(takes_line || takes_block),
        .lost(lost), .clear_lost(clear_lost)
    );

    // the command
    wire [2:0] words;
    wire [9:0] command;
    wire too_long, unprintable, is_load, is_print, first_is_number, second_is_number;
    wire hex_valid, hex_odd, hex_error;
    wire [7:0] hex_byte;
    wire turn_first, turn_second;
    wire [31:0] first_number, second_number;

    entrain_line line (
        .clk(clk),
        .clear(state == START || answered),
        .take(takes_line && !ends_line),
        .defaults(ends_line),
        .character(waiting_data),
        .words(words), .too_long(too_long), .unprintable(unprintable), .command(command),
        .is_load(is_load), .is_print(is_print),
        .first_number(first_number), .first_is_number(first_is_number),
        .turn_first(turn_first), .turn_second(turn_second),
        .hex_valid(hex_valid), .hex_byte(hex_byte), .hex_odd(hex_odd), .hex_error(hex_error),
        .second_number(second_number), .second_is_number(second_is_number)
    );

    // the input: what is loading, how much of it was accepted, and how much with this line
    reg is_loading, is_loaded, has_output;
    reg [IN_BITS-1:0] accepted, reached;
    reg too_much;
    wire is_full = reached == IN_BYTES;
    wire writes_hex = hex_valid && command[DB_C] && is_loading && !is_full;
    wire is_tail;  // of a block: its checksum
    wire writes_block = takes_block && !is_tail && !is_full;

    // a block: its bytes are counted in decimal digits, as they are announced
    reg [31:0] crc;
    reg [7:0] crc_byte;
    reg [2:0] bit_number, tail;
    reg [TIMER_BITS-1:0] timer;
    wire [31:0] count;
    wire count_settled, runner_clears, runner_steps;
    assign is_tail = count == first_number;
    wire is_block = command[LOAD_C] || command[CLASSIFY_C];
    wire right_length = first_number == DIGITS;

    entrain_decimal counter (
        .clk(clk),
        .clear(rst || state == EXECUTE || runner_clears),
        .step((takes_block && !is_tail) || runner_steps),
        .value(count),
        .settled(count_settled)
    );

    // more inferences than a million
    function beyond(input [31:0] number);
        beyond = number[31:28] != 0 || number[27:24] > 1 || (number[24] && number[23:0] != 0);
    endfunction

    // what is answered
    reg [5:0] text;
    wire hex_done = reached == IN_BYTES;
    reg wrong_count;
    always @* begin
        case (1'b1)
            command[DB_C]: wrong_count = words != 3'd2 && words != 3'd3;
            command[INFER_C]: wrong_count = words > 3'd3;
            is_block: wrong_count = words != 3'd2;
            default: wrong_count = words != 3'd1;
        endcase
    end
    wire [3:0] index = {
        command[HELP_C] || command[STACK_C],
        command[RAW_C] || command[CLASSIFY_C] || command[LOAD_C] || command[RESULTS_C],
        command[DB_C] || command[INFER_C] || command[CLASSIFY_C] || command[RAW_C],
        command[PROFILE_C] || command[INFER_C] || command[LOAD_C] || command[RAW_C] ||
        command[HELP_C]
    };
    wire block_may_start = !wrong_count && is_block && first_is_number &&
                           first_number <= MOST_BYTES;
    wire line_is_good = !lost && !unprintable && !too_long && command != 0 && words != 0;
    wire begins_load = command[DB_C] && is_load && words == 3'd3;
    wire load_is_right = second_is_number && second_number == DIGITS;
    wire infer_is_right = first_is_number && second_is_number && first_number != 0 &&
                          !beyond(first_number) && !beyond(second_number);
    wire is_hex = command[DB_C] && words == 3'd2 && !is_load && !is_print;
    wire hex_is_right = is_loading && !hex_error && !hex_odd && !too_much;

    reg [5:0] answer_to_line;
    always @* begin
        if (lost) answer_to_line = LOST;
        else if (unprintable) answer_to_line = UNPRINTABLE;
        else if (too_long) answer_to_line = TOO_LONG;
        else if (words == 0) answer_to_line = READY;
        else if (command == 0) answer_to_line = UNKNOWN;
        else if (wrong_count) answer_to_line = USAGES + index;
        else
            case (1'b1)
                command[NAME_C]: answer_to_line = NAME;
                command[PROFILE_C]: answer_to_line = PROFILE;
                command[STACK_C]: answer_to_line = STACK;
                command[HELP_C]: answer_to_line = HELP;
                command[RESULTS_C]: answer_to_line = has_output ? RESULTS : NO_OUTPUT;
                command[RAW_C]: answer_to_line = has_output ? RAW : NO_OUTPUT;
                command[INFER_C]:
                answer_to_line = !infer_is_right ? INFER_USAGE : is_loaded ? INFER : NO_INPUT;
                command[DB_C]:
                if (begins_load) answer_to_line = load_is_right ? EXPECTING : WRONG_LENGTH;
                else if (is_load || words != 3'd2) answer_to_line = DB_USAGE;
                else if (is_print) answer_to_line = PRINT;
                else if (!is_loading) answer_to_line = NOT_EXPECTED;
                else if (hex_error) answer_to_line = NO_DIGIT;
                else if (hex_odd) answer_to_line = ODD_DIGITS;
                else if (too_much) answer_to_line = TOO_MUCH;
                else answer_to_line = hex_done ? LOADED : READY;
                default: answer_to_line = BAD_LENGTH;  // of a block
            endcase
    end

    wire block_is_whole = right_length && crc == CRC_WHOLE;
    wire [5:0] answer_to_block = block_is_whole ? (command[LOAD_C] ? LOADED : CLASSIFIED) :
                                 lost ? LOST : right_length ? WRONG_CRC : WRONG_LENGTH;
    assign clear_lost = state == EXECUTE || state == BLOCK_END || (state == BLOCK && timer == 0);

    wire run, run_ended;
    wire [1:0] run_kind;

    always @(posedge clk) begin
        if (rst) begin
            state <= START;
            text <= BOOT;
            printing <= 1'b0;
            is_loading <= 1'b0;
            is_loaded <= 1'b0;
            has_output <= 1'b0;
        end else
            case (state)
                START: state <= ANSWER;
                LINE: begin
                    if (ends_line) state <= EXECUTE;
                    if (hex_valid && is_full) too_much <= 1'b1;
                end
                EXECUTE: begin
                    text <= answer_to_line;
                    state <= line_is_good && block_may_start ? BLOCK : ANSWER;
                    if (line_is_good && (block_may_start || (begins_load && load_is_right))) begin
                        has_output <= 1'b0;
                        is_loaded <= 1'b0;
                        is_loading <= begins_load;
                        accepted <= 0;
                    end
                    if (line_is_good && is_hex && hex_is_right) begin
                        accepted <= reached;
                        is_loading <= !hex_done;
                        is_loaded <= hex_done;
                    end
                end
                ANSWER: begin
                    printing <= 1'b1;
                    if (run_ended) has_output <= has_output || count != 0;
                    if (answered) begin
                        printing <= 1'b0;
                        state <= LINE;
                    end
                    too_much <= 1'b0;
                end
                BLOCK:
                if (waiting_valid) state <= CHECKSUM;
                else if (timer == 0) begin
                    text  <= lost ? LOST : STOPPED_SHORT;
                    state <= ANSWER;
                end
                CHECKSUM: if (bit_number == 3'd7) state <= tail == 3'd4 ? BLOCK_END : BLOCK;
                default: begin
                    text <= answer_to_block;
                    is_loaded <= block_is_whole;
                    state <= ANSWER;
                end
            endcase
    end

    always @(posedge clk) begin
        // the input's next byte: a line begins where the last good one ended, a block at 0
        if (state == ANSWER) reached <= accepted;
        else if (state == EXECUTE && is_block) reached <= 0;
        else if (writes_hex || writes_block) reached <= reached + 1'b1;

        timer <= state == BLOCK ? timer - 1'b1 : PATIENCE;
        bit_number <= state == CHECKSUM ? bit_number + 3'd1 : 3'd0;
        if (state == EXECUTE) tail <= 3'd0;
        else if (takes_block && is_tail) tail <= tail + 3'd1;
        if (takes_block) crc_byte <= waiting_data;
        else crc_byte <= crc_byte >> 1;
        if (state == EXECUTE) crc <= 32'hffffffff;
        else if (state == CHECKSUM)
            crc <= (crc >> 1) ^ (crc[0] ^ crc_byte[0] ? 32'hedb88320 : 32'h0);
    end

    // texts out
    wire [7:0] sent;
    wire sent_valid, sent_ready;
    wire [4*TIME_DIGITS-1:0] microseconds;
    wire [7:0] ticks;
    wire print_in_enable, print_out_enable;
    wire [IN_BITS-1:0] print_in_address;
    wire [OUT_BITS-1:0] print_out_address;
    wire [7:0] in_byte, out_byte;

    entrain_printer #(
        .ADDRESS_BITS(TEXT_BITS),
        .READY_AT(READY_AT),
        .NEXT_LINE_AT(NEXT_LINE_AT),
        .DASH_AT(DASH_AT),
        .DIGITS(TIME_DIGITS),
        .IN_BYTES(IN_BYTES),
        .OUT_BYTES(OUT_BYTES),
        .IN_BITS(IN_BITS),
        .OUT_BITS(OUT_BITS)
    ) printer (
        .clk(clk), .rst(rst),
        .start(state == ANSWER && !printing), .text(text),
        .busy(printer_busy), .address(text_address), .character(text_character),
        .warmups(second_number[31:28]), .inferences(first_number[31:28]),
        .turns_warmups(turn_second), .turns_inferences(turn_first),
        .microseconds(microseconds), .ticks(ticks),
        .run(run), .run_kind(run_kind), .run_ended(run_ended),
        .in_enable(print_in_enable), .in_address(print_in_address), .in_byte(in_byte),
        .out_enable(print_out_enable), .out_address(print_out_address), .out_byte(out_byte),
        .sent(sent), .sent_valid(sent_valid), .sent_ready(sent_ready)
    );

    entrain_uart_transmitter #(
        .CLOCKS(CLOCKS_PER_BIT)
    ) transmitter (
        .clk(clk), .rst(rst), .data(sent), .valid(sent_valid), .ready(sent_ready), .line(uart_tx)
    );

    // inferences
    wire infers, feeder_busy, collector_busy;
    wire feed_enable, collect_enable;
    wire [IN_BITS-1:0] feed_address;
    wire [OUT_BITS-1:0] collect_address;
    wire [7:0] collected;

    entrain_runner #(
        .LAST_TICK(LAST_TICK),
        .DIGITS(TIME_DIGITS)
    ) runner (
        .clk(clk), .rst(rst), .run(run), .timed(run_kind == 2'd1),
        .is_all(run_kind == 2'd0 ? count == second_number : run_kind == 2'd1 ? is_tail : count[0]),
        .ended(run_ended), .start(infers), .busy(feeder_busy || collector_busy),
        .count_clear(runner_clears), .count_step(runner_steps),
        .count_settled(count_settled),
        .microseconds(microseconds), .ticks(ticks)
    );

    entrain_feeder #(
        .TOKENS(TOKENS),
        .QUERIES(QUERIES),
        .ANCHOR(ANCHOR),
        .ANCHOR_LANES(ANCHOR_LANES),
        .HEAD(HEAD),
        .HEAD_LANES(HEAD_LANES),
        .VALUE(VALUE),
        .VALUE_LANES(VALUE_LANES),
        .MOST_LANES(MOST_LANES),
        .ADDRESS_BITS(IN_BITS)
    ) feeder (
        .clk(clk), .rst(rst), .start(infers), .busy(feeder_busy),
        .read_enable(feed_enable), .read_address(feed_address), .read_data(in_byte),
        .data(feed_data), .valid(feed_valid), .ready(feed_ready)
    );

    entrain_collector #(
        .BYTES(OUT_BYTES),
        .LANES(CONTEXT_LANES),
        .ADDRESS_BITS(OUT_BITS)
    ) collector (
        .clk(clk), .rst(rst), .start(infers), .busy(collector_busy),
        .data(contexts_data), .valid(contexts_valid), .ready(contexts_ready),
        .write_enable(collect_enable), .write_address(collect_address), .write_data(collected)
    );

    wire writes_input = writes_hex || writes_block;
    entrain_buffer #(
        .DEPTH(IN_BYTES),
        .ADDRESS_BITS(IN_BITS)
    ) input_buffer (
        .clk(clk),
        .enable(writes_input || feed_enable || print_in_enable),
        .write_enable(writes_input),
        .address(writes_input ? reached : feeder_busy ? feed_address : print_in_address),
        .write_data(state == BLOCK ? waiting_data : hex_byte),
        .read_data(in_byte)
    );

    entrain_buffer #(
        .DEPTH(OUT_BYTES),
        .ADDRESS_BITS(OUT_BITS)
    ) output_buffer (
        .clk(clk),
        .enable(collect_enable || print_out_enable),
        .write_enable(collect_enable),
        .address(collect_enable ? collect_address : print_out_address),
        .write_data(collected),
        .read_data(out_byte)
    );

    assign busy = waiting_valid || !(state == LINE || state == BLOCK) || !sent_ready;
endmodule
