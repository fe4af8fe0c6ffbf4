from __future__ import annotations

import re

import pytest

from entrain.deploy.errors import BoardError
from entrain.fpga.back_end.resources import Resources
from entrain.fpga.boards import find_fpga_board, fpga_boards, read_fpga_board

PORTS = {"clk", "uart_rx", "uart_tx", "led", "reset_n"}
GOOD = """
name = "x"
title = "X"
family = "ice40"
device = "iCE40UP5K"
package = "SG48"
clock_mhz = 12
constraints = "x.pcf"
loader = "ice40_generic"
state = "untried"
[resources]
luts = 1
ffs = 2
dsps = 3
brams = 4
"""


@pytest.fixture
def board_file(tmp_path):
    path = tmp_path / "x" / "board.toml"
    path.parent.mkdir()
    (path.parent / "x.pcf").write_text("set_io clk 35\n")

    def write(text: str):
        path.write_text(text)
        return path

    return write


def test_the_built_in_boards():
    assert {name: (board.family, board.device) for name, board in fpga_boards().items()} == {
        "colorlight-i5": ("ecp5", "LFE5U-25F"),
        "icebreaker": ("ice40", "iCE40UP5K"),
        "tang-nano-9k": ("gowin", "GW1NR-LV9QN88PC6/I5"),
        "ulx3s": ("ecp5", "LFE5U-25F"),
    }


@pytest.mark.parametrize("board", fpga_boards().values(), ids=lambda board: board.name)
def test_every_board_gives_the_same_ports_a_pin_each_and_says_where_that_is_from(board):
    text = board.constraints.read_text()
    statement = {
        ".pcf": r"^set_io -nowarn (\w+) +(\w+)",
        ".lpf": r'^LOCATE COMP "(\w+)" SITE "(\w+)"',
        ".cst": r'^IO_LOC "(\w+)" (\w+)',
    }[board.constraints.suffix]
    pins = re.findall(statement, text, re.MULTILINE)
    assert {port for port, _ in pins} == PORTS
    assert len({pin for _, pin in pins}) == len(pins) == len(PORTS)
    assert "https://" in text.split("LOC")[0]


@pytest.mark.parametrize("board", fpga_boards().values(), ids=lambda board: board.name)
def test_the_clock_of_the_constraints_is_the_boards(board):
    statement = r'(?:set_frequency clk|FREQUENCY PORT "clk") (\d+)'
    found = re.search(statement, board.constraints.read_text())
    assert found is None or float(found[1]) == board.clock_mhz
    assert found or board.family == "gowin"  # its constraints know no frequency


def test_a_board_is_read_whole(board_file):
    board = read_fpga_board(board_file(GOOD))
    assert board.resources == Resources(luts=1, ffs=2, dsps=3, brams=4)
    assert board.constraints == board_file(GOOD).parent / "x.pcf"
    assert board.state == "untried"


@pytest.mark.parametrize(
    ("find", "replace", "line", "words"),
    [
        ('state = "untried"', 'state = "untried"\ncolour = 1', 11, "unknown key 'colour'"),
        ("brams = 4", "brams = 4\nurams = 1", 16, "unknown key 'resources.urams'"),
        ("dsps = 3", "dsps = -3", 14, "resources.dsps"),
        ("clock_mhz = 12", "clock_mhz = 0", 7, "clock_mhz"),
        ('"ice40"', '"xc7"', 4, "'family' does not do: families: ice40, ecp5, gowin"),
        ("iCE40UP5K", "iCE40HX8K", 5, "'device' does not do: devices: iCE40UP5K"),
        ("x.pcf", "y.pcf", 8, "'constraints' does not do: there is no"),
        ('name = "x"', 'name = "z"', 2, "calls itself 'z' but its folder is 'x'"),
        ('"untried"', '"works"', 10, "state"),
    ],
)
def test_a_mistake_is_named_with_its_line(board_file, find, replace, line, words):
    path = board_file(GOOD.replace(find, replace))
    with pytest.raises(BoardError) as caught:
        read_fpga_board(path)
    assert words in caught.value.what
    assert caught.value.where == f"{path}:{line}"
    assert caught.value.remedy


def test_a_missing_key_and_a_file_that_is_not_toml(board_file):
    with pytest.raises(BoardError, match="the key 'loader' is missing"):
        read_fpga_board(board_file(GOOD.replace('loader = "ice40_generic"\n', "")))
    with pytest.raises(BoardError, match="not TOML"):
        read_fpga_board(board_file("name ="))


def test_an_unknown_board_is_answered_with_those_that_exist():
    with pytest.raises(BoardError) as caught:
        find_fpga_board("basys3")
    assert caught.value.remedy.endswith("colorlight-i5, icebreaker, tang-nano-9k, ulx3s")
