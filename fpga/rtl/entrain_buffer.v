// Bytes with one port, up to 32768: written, or read with the data a cycle later.
//
// iCE40 (ENTRAIN_ICE40 defined): one SB_SPRAM256KA, whatever DEPTH, which leaves the block RAMs to
// others; what is in it at the start is undefined. Elsewhere synthesis makes it of block RAM.
module entrain_buffer #(
    parameter DEPTH = 512,
    parameter ADDRESS_BITS = DEPTH > 1 ? $clog2(DEPTH) : 1
) (
    input wire clk,
    input wire enable,
    input wire write_enable,
    input wire [ADDRESS_BITS-1:0] address,
    input wire [7:0] write_data,
    output wire [7:0] read_data
);
`ifdef ENTRAIN_ICE40
    wire [14:0] place = {{(15 - ADDRESS_BITS) {1'b0}}, address};
    wire [15:0] word;
    reg upper;
    assign read_data = upper ? word[15:8] : word[7:0];
    always @(posedge clk) if (enable) upper <= place[0];

    SB_SPRAM256KA ram (
        .CLOCK(clk),
        .CHIPSELECT(enable),
        .WREN(write_enable),
        .MASKWREN({{2{place[0]}}, {2{!place[0]}}}),
        .ADDRESS(place[14:1]),
        .DATAIN({write_data, write_data}),
        .DATAOUT(word),
        .STANDBY(1'b0),
        .SLEEP(1'b0),
        .POWEROFF(1'b1)  // it is on
    );
`else
    (* ram_style = "block" *)
    reg [7:0] words[0:DEPTH-1];
    reg [7:0] word;
    assign read_data = word;

    always @(posedge clk) begin
        if (enable) begin
            if (write_enable) words[address] <= write_data;
            else word <= words[address];
        end
    end
`endif
endmodule
