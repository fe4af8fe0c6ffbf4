"""The delays of an SB_MAC16 by its registers, and the longest path through small netlists."""

from __future__ import annotations

import pytest

from entrain.deploy.errors import UsageError
from entrain.fpga.back_end.families.ice40_multiplier import (
    ADD,
    CLOCK_TO_OUTPUT,
    MULTIPLY_8X8,
    MULTIPLY_16X16,
    SETUP,
    multiplier,
)
from entrain.fpga.back_end.families.ice40_timing import longest_path

REGISTERS = ("A_REG", "B_REG", "C_REG", "D_REG", "TOP_8x8_MULT_REG", "BOT_8x8_MULT_REG")
PIPELINES = ("PIPELINE_16x16_MULT_REG1", "PIPELINE_16x16_MULT_REG2")
BARE = dict.fromkeys((*REGISTERS, *PIPELINES, "MODE_8x8"), "0") | {
    "TOPOUTPUT_SELECT": "11",
    "BOTOUTPUT_SELECT": "11",
}
DUAL = BARE | {"MODE_8x8": "1", "TOPOUTPUT_SELECT": "10", "BOTOUTPUT_SELECT": "10"}
SUM = {"TOPOUTPUT_SELECT": "00", "BOTOUTPUT_SELECT": "00"}
REGISTERED_SUM = {"TOPOUTPUT_SELECT": "01", "BOTOUTPUT_SELECT": "01"}


def test_a_multiplier_without_registers_lets_everything_through():
    cell = multiplier(BARE)
    assert (cell.through("A"), cell.before("A"), cell.after) == (MULTIPLY_16X16, None, None)
    assert multiplier(DUAL).through("B") == MULTIPLY_8X8
    summing = multiplier(BARE | SUM)
    assert summing.through("A") == MULTIPLY_16X16 + ADD
    assert summing.through("C") == ADD


def test_registers_of_the_operands_begin_the_path():
    cell = multiplier(BARE | {"A_REG": "1", "B_REG": "1"})
    assert (cell.through("A"), cell.before("A")) == (None, SETUP)
    assert cell.after == CLOCK_TO_OUTPUT + MULTIPLY_16X16
    half = multiplier(BARE | {"A_REG": "1"})
    assert (half.through("A"), half.through("B")) == (None, MULTIPLY_16X16)


def test_a_register_of_the_result_ends_the_path():
    cell = multiplier(BARE | REGISTERED_SUM)
    assert (cell.through("A"), cell.after) == (None, CLOCK_TO_OUTPUT)
    assert cell.before("A") == MULTIPLY_16X16 + ADD + SETUP
    assert cell.before("D") == ADD + SETUP


def test_registers_in_the_middle_are_taken_for_being_at_either_end():
    cell = multiplier(BARE | {"PIPELINE_16x16_MULT_REG2": "1"})
    assert cell.through("A") is None
    assert cell.before("A") == MULTIPLY_16X16 + SETUP
    assert cell.after == CLOCK_TO_OUTPUT + MULTIPLY_16X16


def _delays(*, nets, cells):
    """SDF as nextpnr writes it; nets of 1 ns."""
    wires = "".join(f"(INTERCONNECT {a} {b} (1000:1000:1000) (900:900:900))\n" for a, b in nets)
    text = f'(CELL (CELLTYPE "top") (INSTANCE ) (DELAY (ABSOLUTE\n{wires})))\n'
    for kind, name, paths, setups in cells:
        text += f'(CELL\n (CELLTYPE "{kind}")\n (INSTANCE {name})\n'
        text += "".join(f"(IOPATH {a} {b} (1:2:{d}) (1:2:3))\n" for a, b, d in paths)
        text += "".join(
            f"(SETUPHOLD (posedge {pin}) (posedge CLK) (1:2:{d}) (0:0:0))\n" for pin, d in setups
        )
        text += ")\n"
    return text


REGISTER = [("CLK", "O", 500)], [("I0", 200)]


def test_a_path_of_registers_and_logic(tmp_path):
    sdf = tmp_path / "layout.sdf"
    cells = [
        ("ICESTORM_LC", "one", *REGISTER),
        ("ICESTORM_LC", "logic", [("I0", "O", 700)], []),
        ("ICESTORM_LC", "two", *REGISTER),
    ]
    sdf.write_text(_delays(nets=[("one/O", "logic/I0"), ("logic/O", "two/I0")], cells=cells))
    assert longest_path(sdf, {}) == 500 + 1000 + 700 + 1000 + 200


@pytest.mark.parametrize(
    ("pins", "parameters", "expected"),
    [
        (("A_3", "O_30"), BARE, 500 + 1000 + MULTIPLY_16X16 + 1000 + 200),
        (("A_3", "O_7"), DUAL, 500 + 1000 + MULTIPLY_8X8 + 1000 + 200),
        (("A_3", "O_30"), DUAL, 0),  # the halves have nothing to do with each other
    ],
)
def test_a_path_through_a_multiplier(pins, parameters, expected, tmp_path):
    sdf = tmp_path / "layout.sdf"
    into, out = pins
    cells = [
        ("ICESTORM_LC", "one", *REGISTER),
        ("ICESTORM_DSP", r"mul\$1_DSP", [("CLK", out, 100)], [(into, 100)]),
        ("ICESTORM_LC", "two", *REGISTER),
    ]
    nets = [("one/O", rf"mul\$1_DSP/{into}"), (rf"mul\$1_DSP/{out}", "two/I0")]
    sdf.write_text(_delays(nets=nets, cells=cells))
    assert longest_path(sdf, {"mul$1": multiplier(parameters)}) == expected


def test_a_loop_is_refused(tmp_path):
    sdf = tmp_path / "layout.sdf"
    cells = [("ICESTORM_LC", "logic", [("I0", "O", 700)], [])]
    sdf.write_text(_delays(nets=[("logic/O", "logic/I0")], cells=cells))
    with pytest.raises(UsageError, match="combinational loop"):
        longest_path(sdf, {})
