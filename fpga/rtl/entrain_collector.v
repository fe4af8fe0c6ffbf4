// A block's contexts, LANES bytes a transfer, byte by byte into a buffer.
module entrain_collector #(
    parameter BYTES = 1024,  // of all contexts
    parameter LANES = 1,
    parameter ADDRESS_BITS = 10
) (
    input wire clk,
    input wire rst,
    input wire start,
    output reg busy,
    input wire [8*LANES-1:0] data,
    input wire valid,
    output wire ready,
    output wire write_enable,
    output reg [ADDRESS_BITS-1:0] write_address,
    output wire [7:0] write_data
);
    localparam [ADDRESS_BITS-1:0] LAST = BYTES - 1;
    localparam LEFT_BITS = $clog2(LANES + 1);

    reg [8*LANES-1:0] taken;
    reg [LEFT_BITS-1:0] left;  // bytes still to be written

    assign ready = busy && left <= 1;
    assign write_enable = left != 0;
    assign write_data = taken[7:0];

    always @(posedge clk) begin
        if (rst) begin
            busy <= 1'b0;
            left <= 0;
        end else begin
            if (!busy) begin
                busy <= start;
                write_address <= 0;
            end else if (write_enable) begin
                write_address <= write_address + 1'b1;
                busy <= write_address != LAST;
            end
            if (valid && ready) left <= LANES;
            else if (write_enable) left <= left - 1'b1;
        end
        taken <= valid && ready ? data : taken >> 8;
    end
endmodule
