from __future__ import annotations

import json
import re

import pytest

from entrain.deploy.boards import boards, find_board, firmware_folder, read_board
from entrain.deploy.errors import BoardError

BOARDS = sorted(boards())
GOOD = """
name = "x"
title = "X"
cpu = "Cortex-M4F"
isa = ["-mcpu=cortex-m4"]
mhz = 25
flash_bytes = 1024
ram_bytes = 1024
state = "emulated"
flasher = "qemu"
macs_per_instruction = 2
[cost.cycles_per_instruction]
value = 1.2
low = 1.0
high = 1.5
source = "a book"
"""


@pytest.fixture
def board_file(tmp_path):
    path = tmp_path / "x" / "board.toml"
    path.parent.mkdir()

    def write(text: str):
        path.write_text(text)
        return path

    return write


def test_the_built_in_boards():
    assert {name: find_board(name).cpu for name in boards()} == {
        "mps2-an385": "Cortex-M3",
        "mps2-an385-m0": "Cortex-M0 (code)",
        "mps2-an386": "Cortex-M4F",
        "mps3-an547": "Cortex-M55",
    }
    assert find_board("mps2-an386").cost.nanojoules_per_cycle is not None
    for name in ("mps2-an385", "mps3-an547"):
        assert find_board(name).cost.nanojoules_per_cycle is None


def test_code_for_one_core_on_another_has_no_time_and_says_whose_it_is():
    board = find_board("mps2-an385-m0")
    assert board.cost is None
    assert board.emulator == "mps2-an385"
    assert "its Cortex-M3 runs code for a Cortex-M0" in board.title


@pytest.mark.parametrize("name", BOARDS)
def test_the_linker_and_the_registers_know_the_same_board(name):
    folder = firmware_folder() / "boards" / name
    board = find_board(name)
    lengths = re.findall(r"(FLASH|RAM) .*LENGTH = (\d+)([KM])", (folder / "link.ld").read_text())
    sizes = {region: int(count) << {"K": 10, "M": 20}[unit] for region, count, unit in lengths}
    assert sizes == {"FLASH": board.flash_bytes, "RAM": board.ram_bytes}
    registers = (folder / "board_registers.h").read_text()
    assert f'#define BOARD_NAME "{name}"' in registers
    assert f"#define BOARD_HZ   {board.mhz * 1e6:.0f}u" in registers


@pytest.mark.parametrize("board", [board for board in boards().values() if board.cost])
def test_every_coefficient_has_a_source(board):
    coefficients = (board.cost.cycles_per_instruction, board.cost.nanojoules_per_cycle)
    assert all(one.source for one in coefficients if one is not None)


@pytest.mark.parametrize("name", BOARDS)
def test_an_ide_finds_a_preset_for_every_board(name):
    presets = json.loads((firmware_folder() / "CMakePresets.json").read_text())
    assert name in {preset["name"] for preset in presets["configurePresets"]}


def test_an_unknown_board_lists_those_that_exist():
    with pytest.raises(BoardError, match="mps2-an385, mps2-an385-m0, mps2-an386, mps3-an547"):
        find_board("mps9")


def test_a_board_file(board_file):
    board = read_board(board_file(GOOD))
    assert (board.name, board.mhz, board.emulator, board.llvm_triple) == ("x", 25.0, None, None)


@pytest.mark.parametrize(
    ("before", "after", "line", "what"),
    [
        ("mhz = 25", "mhz = 25\nmghz = 25", 7, "unknown key 'mghz'"),
        ("mhz = 25", "mhz = -25", 6, "mhz"),
        ("mhz = 25", 'mhz = "fast"', 6, "mhz"),
        ("instruction = 2", "instruction = 0", 11, "macs_per_instruction"),
        ('state = "emulated"', 'state = "broken"', 9, "state"),
        ("low = 1.0", "low = 1.0\nlowest = 1.0", 15, "unknown key .*lowest"),
        ("value = 1.2", "value = 0.2", 12, "cycles_per_instruction"),
        ('name = "x"', 'name = "y"', 2, "folder is 'x'"),
        ("mhz = 25", "mhz = = 25", 6, "not TOML"),
    ],
)
def test_a_wrong_value_is_shown_with_file_and_line(board_file, before, after, line, what):
    path = board_file(GOOD.replace(before, after))
    with pytest.raises(BoardError, match=what) as error:
        read_board(path)
    assert error.value.where == f"{path}:{line}"


def test_a_missing_key_is_named(board_file):
    with pytest.raises(BoardError, match="'ram_bytes' is missing"):
        read_board(board_file(GOOD.replace("ram_bytes = 1024\n", "")))
