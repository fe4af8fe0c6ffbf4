// A memory with one read port and one write port, which synthesis makes of block RAM.
//
// read_data follows read_address by one cycle, and stays while read_enable is 0. Where a word is
// read in the cycle in which it is written, read_data is undefined: block RAMs differ in that, and
// making them agree would cost a comparator and a register of WIDTH bits. Simulation gives the
// word from before.
//
// CONTENTS: a file of hexadecimal words for $readmemh, or empty.
module entrain_ram #(
    parameter WIDTH = 8,
    parameter DEPTH = 256,
    parameter ADDRESS_BITS = DEPTH > 1 ? $clog2(DEPTH) : 1,
    parameter CONTENTS = ""
) (
    input wire clk,
    input wire write_enable,
    input wire [ADDRESS_BITS-1:0] write_address,
    input wire [WIDTH-1:0] write_data,
    input wire read_enable,
    input wire [ADDRESS_BITS-1:0] read_address,
    output reg [WIDTH-1:0] read_data
);
    (* no_rw_check, ram_style = "block" *)
    reg [WIDTH-1:0] words[0:DEPTH-1];

    generate
        if (CONTENTS != "") begin : contents
            initial $readmemh(CONTENTS, words);
        end
    endgenerate

    always @(posedge clk) begin
        if (write_enable) words[write_address] <= write_data;
        if (read_enable) read_data <= words[read_address];
    end
endmodule
