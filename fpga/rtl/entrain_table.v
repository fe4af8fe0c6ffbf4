// Offers the words of a memory on a stream, once after each reset. The memory answers a cycle after
// the address.
module entrain_table #(
    parameter DEPTH = 2048,
    parameter ADDRESS_BITS = $clog2(DEPTH)
) (
    input wire clk,
    input wire rst,
    output wire [ADDRESS_BITS-1:0] address,
    output reg valid,
    input wire ready
);
    reg [ADDRESS_BITS:0] taken;  // words

    wire takes = valid && ready;
    assign address = taken[ADDRESS_BITS-1:0];

    always @(posedge clk) begin
        if (rst) begin
            taken <= 0;
            valid   <= 1'b0;
        end else if (!valid) valid <= taken != DEPTH;
        else if (takes) begin
            taken <= taken + 1'b1;
            valid   <= 1'b0;  // until the next word is there
        end
    end
endmodule
