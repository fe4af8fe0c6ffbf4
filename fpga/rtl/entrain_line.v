// One command, character by character: how many words it has, which command it is, and its numbers.
// The '%' that ends it is not given. What is here is the firmware's line.c and text.c.
module entrain_line (
    input wire clk,
    input wire clear,
    input wire take,
    input wire defaults,  // the line is complete: numbers that are not given are 1 and 10
    input wire [7:0] character,
    output reg [2:0] words,  // up to 4, which stands for more too
    output reg too_long,
    output reg unprintable,
    // of the first word, in the order of COMMANDS
    output wire [9:0] command,
    // of the second
    output wire is_load,
    output wire is_print,
    output reg [31:0] first_number,  // decimal digits
    output reg first_is_number,
    output wire hex_valid,  // a byte is complete
    output wire [7:0] hex_byte,
    output reg hex_odd,
    output reg hex_error,
    input wire turn_first,  // the highest digit becomes the lowest
    // of the third
    output reg [31:0] second_number,
    output reg second_is_number,
    input wire turn_second
);
    localparam CAPACITY = 80;
    localparam COMMANDS = 10;

    localparam LOAD = 5, PRINT = 10;

    // the first letter lowest, so that letter n stands at bit 8 n
    function [63:0] spelling(input integer index);
        case (index)
            0: spelling = "eman";
            1: spelling = "eliforp";
            2: spelling = "bd";
            3: spelling = "refni";
            4: spelling = "stluser";
            5: spelling = "daol";
            6: spelling = "yfissalc";
            7: spelling = "war";
            8: spelling = "kcats";
            9: spelling = "pleh";
            default: spelling = "tnirp";
        endcase
    endfunction

    function [3:0] letters(input integer index);
        case (index)
            0, 5, 9: letters = 4;
            1, 4: letters = 7;
            2: letters = 2;
            6: letters = 8;
            7: letters = 3;
            default: letters = 5;
        endcase
    endfunction

    reg [6:0] length;
    reg in_word;
    wire is_blank = character == " " || character == "\t" || character == 8'h0a ||
                    character == 8'h0d;
    wire is_printable = is_blank || (character > " " && character <= "~");
    wire fits = length != CAPACITY;
    wire is_letter = take && is_printable && !is_blank && fits;
    wire [2:0] number_of_word = in_word ? words - 3'd1 : words;

    always @(posedge clk) begin
        if (clear) begin
            length <= 7'd0;
            in_word <= 1'b0;
            words <= 3'd0;
            too_long <= 1'b0;
            unprintable <= 1'b0;
        end else if (take && !(is_blank && length == 0)) begin
            if (!is_printable) unprintable <= 1'b1;
            else if (!fits) too_long <= 1'b1;
            else begin
                length <= length + 7'd1;
                in_word <= !is_blank;
                if (!is_blank && !in_word && words != 3'd4) words <= words + 3'd1;
            end
        end
    end

    // words that are spelt out: a candidate is dropped with its first wrong letter
    reg [COMMANDS-1:0] candidates;
    reg [1:0] candidates_of_second;
    reg [3:0] first_length, second_length;  // 8 stands for more too
    wire in_first = number_of_word == 3'd0;
    wire in_second = number_of_word == 3'd1;
    wire in_third = number_of_word == 3'd2;

    // a lower-case letter is known by its lowest five bits; none is 0
    wire [4:0] letter = character[7:5] == 3'b011 ? character[4:0] : 5'd0;

    genvar i;
    generate
        for (i = 0; i <= PRINT; i = i + 1) begin : spelt
            wire [63:0] word = spelling(i);
            wire [4:0] first = word[8*first_length[2:0]+:5];
            wire [4:0] second = word[8*second_length[2:0]+:5];
            if (i < COMMANDS) begin : of_first
                assign command[i] = candidates[i] && first_length == letters(i);
                always @(posedge clk) begin
                    if (clear) candidates[i] <= 1'b1;
                    else if (is_letter && in_first && (letter != first || first_length[3]))
                        candidates[i] <= 1'b0;
                end
            end
            if (i == LOAD || i == PRINT) begin : of_second
                always @(posedge clk) begin
                    if (clear) candidates_of_second[i==PRINT] <= 1'b1;
                    else if (is_letter && in_second && (letter != second || second_length[3]))
                        candidates_of_second[i==PRINT] <= 1'b0;
                end
            end
        end
    endgenerate
    assign is_load  = candidates_of_second[0] && second_length == letters(LOAD);
    assign is_print = candidates_of_second[1] && second_length == letters(PRINT);

    always @(posedge clk) begin
        if (clear) begin
            first_length  <= 4'd0;
            second_length <= 4'd0;
        end else if (is_letter) begin
            if (in_first && first_length != 4'd8) first_length <= first_length + 4'd1;
            if (in_second && second_length != 4'd8) second_length <= second_length + 4'd1;
        end
    end

    // numbers, and digits of bytes
    wire is_digit = character >= "0" && character <= "9";
    wire [7:0] lower = character | 8'h20;
    wire is_hex = is_digit || (lower >= "a" && lower <= "f");
    wire [3:0] digit = is_digit ? character[3:0] : character[3:0] + 4'd9;
    wire shifts_first = (is_letter && in_second) || turn_first;
    wire shifts_second = (is_letter && in_third) || turn_second;
    reg [3:0] upper;
    assign hex_valid = is_letter && in_second && hex_odd && is_hex && !hex_error;
    assign hex_byte  = {upper, digit};

    always @(posedge clk) begin
        if (clear) first_number <= 32'd0;
        else if (defaults) begin
            if (words <= 3'd1) first_number[0] <= 1'b1;
        end else if (shifts_first)
            first_number <= {first_number[27:0], turn_first ? first_number[31:28] : digit};

        if (clear) second_number <= 32'd0;
        else if (defaults) begin
            if (words <= 3'd2) second_number[4] <= 1'b1;
        end else if (shifts_second)
            second_number <= {second_number[27:0], turn_second ? second_number[31:28] : digit};
    end

    always @(posedge clk) begin
        if (clear) begin
            first_is_number <= 1'b1;
            second_is_number <= 1'b1;
            hex_odd <= 1'b0;
            hex_error <= 1'b0;
        end else if (is_letter) begin
            if (in_second) begin
                if (!is_digit || first_number[31:28] != 0) first_is_number <= 1'b0;
                hex_odd <= !hex_odd;
                if (!is_hex) hex_error <= 1'b1;
                upper <= digit;
            end
            if (in_third) begin
                if (!is_digit || second_number[31:28] != 0) second_is_number <= 1'b0;
            end
        end
    end
endmodule
