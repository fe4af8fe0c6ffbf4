// So many inferences one after the other, and how long those took that are timed: what lies between
// them is not counted. The counter of inferences is the caller's.
module entrain_runner #(
    parameter [7:0] LAST_TICK = 8'h11,  // decimal digits: cycles of a microsecond, less one
    parameter DIGITS = 10
) (
    input wire clk,
    input wire rst,
    input wire run,  // until `ended`
    input wire timed,
    input wire is_all,  // of the inferences are counted
    output wire ended,
    output wire start,  // an inference, which is busy from the next cycle on
    input wire busy,
    output wire count_clear,
    output wire count_step,
    input wire count_settled,
    // decimal digits, of the last run that was timed: whole microseconds, and cycles beyond them
    output wire [4*DIGITS-1:0] microseconds,
    output reg [7:0] ticks
);
    localparam [1:0] IDLE = 2'd0, CHECK = 2'd1, BUSY = 2'd2;

    reg [1:0] state;
    wire begins = state == IDLE && run;
    wire counts = state == BUSY && busy && timed;
    wire is_tick = ticks == LAST_TICK;

    assign ended = state == CHECK && count_settled && is_all;
    assign start = state == CHECK && count_settled && !is_all;
    assign count_clear = begins;
    assign count_step = state == BUSY && !busy;

    always @(posedge clk) begin
        if (rst) state <= IDLE;
        else
            case (state)
                IDLE: if (run) state <= CHECK;
                CHECK: if (count_settled) state <= is_all ? IDLE : BUSY;
                default: if (!busy) state <= CHECK;
            endcase
        if ((begins && timed) || (counts && is_tick)) ticks <= 8'd0;
        else if (counts) begin
            ticks[3:0] <= ticks[3] && ticks[0] ? 4'd0 : ticks[3:0] + 4'd1;
            if (ticks[3] && ticks[0]) ticks[7:4] <= ticks[7:4] + 4'd1;
        end
    end

    entrain_decimal #(
        .DIGITS(DIGITS)
    ) microseconds_taken (
        .clk(clk),
        .clear(rst || (begins && timed)),
        .step(counts && is_tick),
        .value(microseconds),
        .settled()
    );
endmodule
