// An entrain_ram behind three streams: addresses to read, the words there, and words to write.
//
// A word follows its address by one cycle and waits in the memory's own output register until it is
// taken; meanwhile no other address is. So nothing is lost when a stage behind it stalls.
module entrain_memory #(
    parameter WIDTH = 8,
    parameter DEPTH = 256,
    parameter ADDRESS_BITS = 8,
    parameter CONTENTS = ""
) (
    input wire clk,
    input wire rst,
    input wire [ADDRESS_BITS-1:0] read_data,
    input wire read_valid,
    output wire read_ready,
    output wire [WIDTH-1:0] word_data,
    output reg word_valid,
    input wire word_ready,
    input wire [ADDRESS_BITS+WIDTH-1:0] write_data,
    input wire write_valid,
    output wire write_ready
);
    localparam USED = DEPTH > 1 ? $clog2(DEPTH) : 1;

    assign read_ready = !word_valid || word_ready;
    assign write_ready = 1'b1;

    always @(posedge clk) begin
        if (rst) word_valid <= 1'b0;
        else if (read_ready) word_valid <= read_valid;
    end

    entrain_ram #(
        .WIDTH(WIDTH),
        .DEPTH(DEPTH),
        .CONTENTS(CONTENTS)
    ) ram (
        .clk(clk),
        .write_enable(write_valid),
        .write_address(write_data[WIDTH+USED-1:WIDTH]),
        .write_data(write_data[WIDTH-1:0]),
        .read_enable(read_valid && read_ready),
        .read_address(read_data[USED-1:0]),
        .read_data(word_data)
    );
endmodule
