// The serial line, 8N1: a receiver and a transmitter. CLOCKS: clock cycles a bit, 4 or more.

// `valid` for one cycle with each byte. A byte whose stop bit is 0 is none.
module entrain_uart_receiver #(
    parameter CLOCKS = 104
) (
    input wire clk,
    input wire rst,
    input wire line,
    output reg [7:0] data,
    output reg valid
);
    localparam COUNT_BITS = $clog2(CLOCKS);
    localparam [COUNT_BITS-1:0] WHOLE = CLOCKS - 1;
    localparam [COUNT_BITS-1:0] HALF = CLOCKS / 2 - 1;

    reg [1:0] settled = 2'b11;  // the line is nobody's clock
    reg [COUNT_BITS-1:0] count;
    reg [3:0] place;  // 0: the start bit, 1 to 8: data, 9: the stop bit
    reg busy;

    always @(posedge clk) begin
        settled <= {settled[0], line};
        valid <= 1'b0;
        if (rst) busy <= 1'b0;
        else if (!busy) begin
            busy <= !settled[1];
            count <= HALF;
            place <= 4'd0;
        end else if (count != 0) count <= count - 1'b1;
        else begin
            count <= WHOLE;
            place <= place + 1'b1;
            if (place == 4'd0) busy <= !settled[1];  // what ended at once was no start bit
            else if (place <= 4'd8) data <= {settled[1], data[7:1]};
            else begin
                valid <= settled[1];
                busy <= 1'b0;
            end
        end
    end
endmodule

module entrain_uart_transmitter #(
    parameter CLOCKS = 104
) (
    input wire clk,
    input wire rst,
    input wire [7:0] data,
    input wire valid,
    output wire ready,
    output wire line
);
    localparam COUNT_BITS = $clog2(CLOCKS);
    localparam [COUNT_BITS-1:0] WHOLE = CLOCKS - 1;

    reg [COUNT_BITS-1:0] count;
    reg [9:0] bits;  // the next one lowest; a last 1 is the stop bit, and the idle line

    assign ready = bits == 10'd1 && count == 0;
    assign line  = bits[0];

    always @(posedge clk) begin
        if (rst) begin
            bits  <= 10'd1;
            count <= 0;
        end else if (ready) begin
            if (valid) begin
                bits  <= {1'b1, data, 1'b0};
                count <= WHOLE;
            end
        end else if (count != 0) count <= count - 1'b1;
        else begin
            bits  <= bits >> 1;
            count <= WHOLE;
        end
    end
endmodule
