// A decimal counter, four bits a digit. Carries move one digit a cycle: the clock may be fast, and
// the value is right once `settled` is 1. It is cleared only then.
module entrain_decimal #(
    parameter DIGITS = 8
) (
    input wire clk,
    input wire clear,
    input wire step,
    output wire [4*DIGITS-1:0] value,
    output wire settled
);
    reg [DIGITS-1:0] carries;  // into the digit above
    assign settled = carries == 0;

    genvar i;
    generate
        for (i = 0; i < DIGITS; i = i + 1) begin : digits
            reg [3:0] digit;
            wire steps = i == 0 ? step : carries[i == 0 ? 0 : i-1];
            assign value[4*i+:4] = digit;

            always @(posedge clk) begin
                carries[i] <= steps && digit[3] && digit[0] && !clear;
                if (clear) digit <= 4'd0;
                else if (steps) begin  // 9 is followed by 0
                    digit[0] <= !digit[0];
                    digit[1] <= digit[1] ^ (digit[0] && !digit[3]);
                    digit[2] <= digit[2] ^ (digit[1] && digit[0]);
                    digit[3] <= (digit[2] && digit[1] && digit[0]) || (digit[3] && !digit[0]);
                end
            end
        end
    endgenerate
endmodule
