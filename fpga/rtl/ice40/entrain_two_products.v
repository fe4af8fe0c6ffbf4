// An SB_MAC16 in its mode of two 8x8 multipliers, both signed, no registers: O = {A1 B1, A0 B0}.
//
// Synthesis takes it for a cell that it does not know, and puts this in afterwards: yosys 0.70's pass
// for multipliers would take the registers around an SB_MAC16 into it and turn it into one of 16x16.
module entrain_two_products (
    input wire [15:0] A,
    input wire [15:0] B,
    output wire [31:0] O
);
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
    ) _TECHMAP_REPLACE_ (
        .CLK(1'b0),
        .CE(1'b0),
        .A(A),
        .B(B),
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
        .O(O),
        .CO(),
        .ACCUMCO(),
        .SIGNEXTOUT()
    );
endmodule
