// Two signed products of 8-bit numbers: product_0 = a_0 b_0 and product_1 = a_1 b_1. No registers.
//
// iCE40 (ENTRAIN_ICE40 defined): one SB_MAC16 in its mode of two 8x8 multipliers, which synthesis
// does not infer.
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
    SB_MAC16 #(
        .NEG_TRIGGER(1'b0),
        .A_REG(1'b0),
        .B_REG(1'b0),
        .C_REG(1'b0),
        .D_REG(1'b0),
        .TOP_8x8_MULT_REG(1'b0),
        .BOT_8x8_MULT_REG(1'b0),
        .PIPELINE_16x16_MULT_REG1(1'b0),
        .PIPELINE_16x16_MULT_REG2(1'b0),
        .TOPOUTPUT_SELECT(2'b10),  // the upper 8x8 multiplier
        .BOTOUTPUT_SELECT(2'b10),  // the lower one
        .MODE_8x8(1'b1),
        .A_SIGNED(1'b1),
        .B_SIGNED(1'b1)
    ) multipliers (
        .CLK(1'b0),
        .CE(1'b0),
        .A({a_1, a_0}),
        .B({b_1, b_0}),
        .C(16'b0),
        .D(16'b0),
        .AHOLD(1'b0),
        .BHOLD(1'b0),
        .CHOLD(1'b0),
        .DHOLD(1'b0),
        .IRSTTOP(1'b0),
        .IRSTBOT(1'b0),
        .ORSTTOP(1'b0),
        .ORSTBOT(1'b0),
        .OLOADTOP(1'b0),
        .OLOADBOT(1'b0),
        .ADDSUBTOP(1'b0),
        .ADDSUBBOT(1'b0),
        .OHOLDTOP(1'b0),
        .OHOLDBOT(1'b0),
        .CI(1'b0),
        .ACCUMCI(1'b0),
        .SIGNEXTIN(1'b0),
        .O({product_1, product_0}),
        .CO(),
        .ACCUMCO(),
        .SIGNEXTOUT()
    );
`else
    assign product_0 = a_0 * b_0;
    assign product_1 = a_1 * b_1;
`endif
endmodule
