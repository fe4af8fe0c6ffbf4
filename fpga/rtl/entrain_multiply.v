// The unsigned product of two 16-bit numbers, from one DSP block. No registers.
module entrain_multiply (
    input wire [15:0] a,
    input wire [15:0] b,
    output wire [31:0] product
);
    assign product = a * b;
endmodule
