// Received bytes, kept until they are taken. `lost` stays 1 after one too many, until it is cleared.
// A byte leaves through a register: what reads it begins its cycle with it, not with the memory.
module entrain_fifo #(
    parameter ADDRESS_BITS = 9
) (
    input wire clk,
    input wire rst,
    input wire [7:0] in_data,
    input wire in_valid,
    output reg [7:0] out_data,
    output reg out_valid,
    input wire out_ready,
    output reg lost,
    input wire clear_lost
);
    reg [ADDRESS_BITS:0] written, read;
    wire is_empty = written == read;
    wire is_full = written == {!read[ADDRESS_BITS], read[ADDRESS_BITS-1:0]};
    wire writes = in_valid && !is_full;
    reg fetched;  // the memory's byte waits for the register
    wire [7:0] fetched_data;
    wire reads = !is_empty && !fetched;
    wire moves = fetched && !out_valid;

    entrain_ram #(
        .WIDTH(8),
        .DEPTH(1 << ADDRESS_BITS)
    ) ram (
        .clk(clk),
        .write_enable(writes),
        .write_address(written[ADDRESS_BITS-1:0]),
        .write_data(in_data),
        .read_enable(reads),
        .read_address(read[ADDRESS_BITS-1:0]),
        .read_data(fetched_data)
    );

    always @(posedge clk) begin
        if (rst) begin
            written <= 0;
            read <= 0;
            fetched <= 1'b0;
            out_valid <= 1'b0;
            lost <= 1'b0;
        end else begin
            if (writes) written <= written + 1'b1;
            if (reads) read <= read + 1'b1;
            if (reads) fetched <= 1'b1;
            else if (moves) fetched <= 1'b0;
            if (moves) out_valid <= 1'b1;
            else if (out_ready) out_valid <= 1'b0;
            if (in_valid && is_full) lost <= 1'b1;
            else if (clear_lost) lost <= 1'b0;
        end
        if (moves) out_data <= fetched_data;
    end
endmodule
