// The reset of everything: from the start until the button is up, in step with the clock.
module entrain_reset (
    input wire clk,
    input wire reset_n,
    output wire rst
);
    reg [3:0] released = 4'd0;
    assign rst = !released[3];

    always @(posedge clk) released <= {released[2:0], reset_n};
endmodule
