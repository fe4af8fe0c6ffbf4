// Two signed products of 8-bit numbers: product_0 = a_0 b_0 and product_1 = a_1 b_1. No registers.
//
// iCE40 (ENTRAIN_ICE40 defined): one SB_MAC16 in its mode of two 8x8 multipliers, which synthesis
// does not infer (ice40/entrain_two_products.v).
// Gowin: two MULT9X9, the halves of one 18x18 multiplier; synthesis infers them.
// ECP5: two MULT18X18D. The hardware's 9x9 multipliers (MULT9X9D) are known neither to yosys nor
// to nextpnr, and two independent signed products do not fit into one of 18x18.
module entrain_dual_multiply (
    input wire signed [7:0] a_0,
    input wire signed [7:0] b_0,
    input wire signed [7:0] a_1,
    input wire signed [7:0] b_1,
    output wire signed [15:0] product_0,
    output wire signed [15:0] product_1
);
`ifdef ENTRAIN_ICE40
    entrain_two_products multipliers (
        .A({a_1, a_0}),
        .B({b_1, b_0}),
        .O({product_1, product_0})
    );
`else
    assign product_0 = a_0 * b_0;
    assign product_1 = a_1 * b_1;
`endif
endmodule
