// Sends a text: characters, and codes above them for what is only known when they are sent.
//
// The texts lie in a memory that answers a cycle after the address. Its first words say where each
// text begins, in eights.
module entrain_printer #(
    parameter ADDRESS_BITS = 11,  // of texts
    parameter [ADDRESS_BITS-1:0] READY_AT = 0,  // the text behind each text
    parameter [ADDRESS_BITS-1:0] NEXT_LINE_AT = 0,  // the text between two lines of bytes
    parameter [ADDRESS_BITS-1:0] DASH_AT = 0,  // the text between two bytes of a line
    parameter DIGITS = 10,  // of the microseconds
    parameter IN_BYTES = 1,
    parameter OUT_BYTES = 1,
    parameter IN_BITS = 1,  // of addresses
    parameter OUT_BITS = 1
) (
    input wire clk,
    input wire rst,
    input wire start,
    input wire [5:0] text,
    output wire busy,
    output reg [ADDRESS_BITS-1:0] address,
    input wire [7:0] character,
    // decimal digits; of the first two the highest, and they are turned to show the next
    input wire [3:0] warmups,
    input wire [3:0] inferences,
    output wire turns_warmups,
    output wire turns_inferences,
    input wire [4*DIGITS-1:0] microseconds,
    input wire [7:0] ticks,
    // a run that the text asks for, until it has ended
    output wire run,
    output wire [1:0] run_kind,  // 0: the warm-ups, 1: timed, 2: once
    input wire run_ended,
    output wire in_enable,
    output wire [IN_BITS-1:0] in_address,
    input wire [7:0] in_byte,
    output wire out_enable,
    output wire [OUT_BITS-1:0] out_address,
    input wire [7:0] out_byte,
    output wire [7:0] sent,
    output wire sent_valid,
    input wire sent_ready
);
    localparam BYTE_BITS = IN_BITS > OUT_BITS ? IN_BITS : OUT_BITS;
    localparam [7:0] END = 8'h80, STOP = 8'h81, IN = 8'h82, OUT = 8'h83, WARMUPS = 8'h84,
        INFERENCES = 8'h85, MICROSECONDS = 8'h86, TICKS = 8'h87, RUN = 8'h88;
    localparam [2:0] IDLE = 0, FETCH = 1, EXECUTE = 2, NUMBER = 3, READ = 4, HIGH = 5, LOW = 6,
        TABLE = 7;

    reg [2:0] state;
    reg [3:0] place;  // of the digit
    reg looks_up;  // what is fetched is where the text begins
    reg begun;  // a digit that is not 0 was sent
    reg of_input;  // bytes: the input's, else the output's
    reg [BYTE_BITS-1:0] byte_at;

    wire is_text = !character[7];
    wire [63:0] counted = {{(64 - 4 * DIGITS) {1'b0}}, microseconds};
    wire [3:0] digit = character[1:0] == WARMUPS[1:0] ? warmups :
                       character[1:0] == INFERENCES[1:0] ? inferences :
                       character[1:0] == MICROSECONDS[1:0] ? counted[4*place+:4] :
                       place[0] ? ticks[7:4] : ticks[3:0];
    wire shows = begun || digit != 0 || place == 0;
    wire next_digit = state == NUMBER && (!shows || sent_ready);
    assign turns_warmups = next_digit && character[1:0] == WARMUPS[1:0];
    assign turns_inferences = next_digit && character[1:0] == INFERENCES[1:0];
    wire [7:0] shown_byte = of_input ? in_byte : out_byte;
    wire [3:0] nibble = state == HIGH ? shown_byte[7:4] : shown_byte[3:0];
    wire is_last = byte_at == (of_input ? IN_BYTES - 1 : OUT_BYTES - 1);

    assign busy = state != IDLE;
    assign run = state == EXECUTE && character[7:2] == RUN[7:2];
    assign run_kind = character[1:0];
    assign in_enable = state == READ && of_input;
    assign out_enable = state == READ && !of_input;
    assign in_address = byte_at[IN_BITS-1:0];
    assign out_address = byte_at[OUT_BITS-1:0];
    assign sent = state == EXECUTE ? character : state == NUMBER ? {4'h3, digit} :
                  nibble < 4'd10 ? {4'h3, nibble} : {4'h6, nibble - 4'd9};
    assign sent_valid = (state == EXECUTE && is_text) || (state == NUMBER && shows) ||
                        state == HIGH || state == LOW;

    always @(posedge clk) begin
        if (rst) state <= IDLE;
        else
            case (state)
                IDLE: begin
                    address <= text;
                    looks_up <= 1'b1;
                    if (start) state <= FETCH;
                end
                FETCH: begin
                    state <= looks_up ? TABLE : EXECUTE;
                    looks_up <= 1'b0;
                    begun <= 1'b0;
                end
                TABLE: begin
                    state <= FETCH;
                    address <= {character, 3'd0};
                end
                EXECUTE:
                if (is_text ? sent_ready : run ? run_ended : 1'b1) begin
                    state <= FETCH;
                    address <= address + 1'b1;
                    if (character == STOP) state <= IDLE;
                    if (character == END) address <= READY_AT;
                    if (character == IN || character == OUT) begin
                        state <= READ;
                        of_input <= character == IN;
                        address <= address;
                    end
                    if (character[7:2] == WARMUPS[7:2]) begin
                        state   <= NUMBER;
                        address <= address;
                        place   <= !character[1] ? 4'd7 : !character[0] ? DIGITS - 1 : 4'd1;
                    end
                end
                NUMBER:
                if (next_digit) begin
                    begun <= shows;
                    place <= place - 4'd1;
                    if (place == 0) begin
                        state   <= FETCH;
                        address <= address + 1'b1;
                    end
                end
                READ: state <= HIGH;
                HIGH: if (sent_ready) state <= LOW;
                default:
                if (sent_ready) begin
                    byte_at <= byte_at + 1'b1;
                    state   <= of_input || is_last ? FETCH : READ;
                    if (is_last) begin
                        address <= address + 1'b1;
                        byte_at <= 0;
                    end else if (of_input) address <= byte_at[2:0] == 3'd7 ? NEXT_LINE_AT : DASH_AT;
                end
            endcase
        if (rst) byte_at <= 0;
    end
endmodule
