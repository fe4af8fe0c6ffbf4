// The bytes of one sequence, from a buffer to a block's streams.
//
// In the buffer lie TOKENS anchors, TOKENS keys, TOKENS values and QUERIES queries; of anchors there
// are none if ANCHOR is 0. They are offered token by token, anchor, key and value, because a block
// may take a value only with its anchor; then the queries. A transfer is as many bytes as the
// stream has lanes, and `data` holds it in its uppermost bytes, the first element lowest.
module entrain_feeder #(
    parameter TOKENS = 64,
    parameter QUERIES = 64,
    // bytes of a vector, and of a transfer
    parameter ANCHOR = 2,
    parameter ANCHOR_LANES = 1,
    parameter HEAD = 16,
    parameter HEAD_LANES = 4,
    parameter VALUE = 16,
    parameter VALUE_LANES = 1,
    parameter MOST_LANES = 4,
    parameter ADDRESS_BITS = 12
) (
    input wire clk,
    input wire rst,
    input wire start,
    output wire busy,
    output wire read_enable,
    output reg [ADDRESS_BITS-1:0] read_address,
    input wire [7:0] read_data,
    output reg [8*MOST_LANES-1:0] data,
    output wire [3:0] valid,  // anchors, keys, values, queries
    input wire [3:0] ready
);
    localparam [1:0] ANCHORS = 2'd0, KEYS = 2'd1, VALUES = 2'd2, ASKED = 2'd3;
    localparam [1:0] FIRST = ANCHOR == 0 ? KEYS : ANCHORS;
    localparam KEYS_AT = TOKENS * ANCHOR;
    localparam VALUES_AT = KEYS_AT + TOKENS * HEAD;

    // what is read: the address goes out while `reading`, and the byte is there a cycle later
    reg reading;
    reg [1:0] stream;
    reg [7:0] vectors;  // tokens, then queries, behind this one
    reg [7:0] left;  // bytes of the vector behind this one
    reg [7:0] lane;  // bytes of the transfer behind this one
    // the next bytes of the streams; the queries lie behind the last value
    reg [ADDRESS_BITS-1:0] anchors_at, keys_at, values_at;

    // the byte that was read
    reg has_byte, ends_transfer;
    reg [1:0] stream_of_byte;
    // the transfer that is offered
    reg offers;
    reg [1:0] stream_offered;

    function [7:0] bytes(input [1:0] of);
        case (of)
            ANCHORS: bytes = ANCHOR;
            VALUES: bytes = VALUE;
            default: bytes = HEAD;
        endcase
    endfunction

    function [7:0] lanes(input [1:0] of);
        case (of)
            ANCHORS: lanes = ANCHOR_LANES;
            VALUES: lanes = VALUE_LANES;
            default: lanes = HEAD_LANES;
        endcase
    endfunction

    wire [ADDRESS_BITS-1:0] next_address = read_address + 1'b1;
    wire is_last = vectors == 0;
    wire [1:0] next = left != 0 ? stream : stream == ASKED ? ASKED :
                      stream != VALUES ? stream + 2'd1 : is_last ? ASKED : FIRST;
    // not before the offer is taken: nothing here waits for `ready`, which may be late in the cycle
    wire takes_byte = has_byte && !offers;

    assign busy = reading || has_byte || offers;
    assign read_enable = reading && (!has_byte || takes_byte);
    assign valid = offers ? 4'd1 << stream_offered : 4'd0;

    always @* begin
        case (stream)
            ANCHORS: read_address = anchors_at;
            KEYS: read_address = keys_at;
            default: read_address = values_at;
        endcase
    end

    always @(posedge clk) begin
        if (rst) reading <= 1'b0;
        else if (!busy) begin
            reading <= start;
            stream <= FIRST;
            vectors <= TOKENS - 1;
            left <= bytes(FIRST) - 8'd1;
            lane <= lanes(FIRST) - 8'd1;
            anchors_at <= 0;
            keys_at <= KEYS_AT;
            values_at <= VALUES_AT;
        end else if (read_enable) begin
            if (stream == ANCHORS) anchors_at <= next_address;
            if (stream == KEYS) keys_at <= next_address;
            if (stream == VALUES || stream == ASKED) values_at <= next_address;
            stream <= next;
            left <= (left != 0 ? left : bytes(next)) - 8'd1;
            lane <= (lane != 0 ? lane : lanes(next)) - 8'd1;
            if (left == 0 && stream == VALUES) vectors <= is_last ? QUERIES - 1 : vectors - 8'd1;
            if (left == 0 && stream == ASKED) begin
                vectors <= vectors - 8'd1;
                reading <= !is_last;
            end
        end
    end

    always @(posedge clk) begin
        if (rst) has_byte <= 1'b0;
        else if (read_enable || takes_byte) has_byte <= read_enable;
        if (read_enable) begin
            ends_transfer  <= lane == 0;
            stream_of_byte <= stream;
        end

        if (rst) offers <= 1'b0;
        else if (takes_byte) offers <= ends_transfer;
        else if (ready[stream_offered]) offers <= 1'b0;
        if (takes_byte) begin
            data <= {read_data, data} >> 8;
            stream_offered <= stream_of_byte;
        end
    end
endmodule
