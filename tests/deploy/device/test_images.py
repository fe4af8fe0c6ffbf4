"""What stands in an image: its core's instructions and no others, and the vectors."""

from __future__ import annotations

import re
import struct
import subprocess

import pytest
from elftools.elf.elffile import ELFFile

from entrain.deploy.boards import boards, firmware_folder
from entrain.deploy.elf import build_attributes, instruction_set, read_symbols

BOARDS = [board.name for board in boards().values() if board.emulator]
WITHOUT_FLOATS = ["mps2-an385", "mps2-an385-m0"]
# Tag_CPU_arch of the ABI's addenda: v6S-M, v7, v7E-M, v8.1-M Mainline.
ARCHITECTURES = {
    "mps2-an385-m0": (12, "thumb-1"),
    "mps2-an385": (10, "scalar"),
    "mps2-an386": (13, "dsp"),
    "mps3-an547": (21, "mve"),
}
# Armv6-M has these of 32 bits (a call, barriers, special registers), and of 16 bits all but those.
LONG_OF_ARMV6M = {"bl", "dmb", "dsb", "isb", "mrs", "msr"}
SHORT_OF_ARMV7M = re.compile(r"it[te]{0,3}|cbn?z")


def instructions(image):
    """Mnemonic and size in bytes of every instruction."""
    command = ["arm-none-eabi-objdump", "-d", "-M", "force-thumb", image]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ +[0-9a-f]+:\t((?:[0-9a-f]{4} ?){1,2}) *\t(\w+)", listing, re.MULTILINE)
    assert len(found) > 1_000
    return {(mnemonic, len(raw.split()) * 2) for raw, mnemonic in found}


@pytest.mark.parametrize("board", BOARDS)
def test_an_image_is_of_its_boards_architecture(images, board):
    image = images(board, "linear")
    found = (build_attributes(image)["TAG_CPU_ARCH"], instruction_set(image))
    assert found == ARCHITECTURES[board]


@pytest.mark.parametrize("board", BOARDS)
def test_the_vectors_lie_at_the_start_and_lead_to_the_handlers(images, board):
    image = images(board, "linear")
    addresses = read_symbols(image).addresses
    with image.open("rb") as file:
        (first,) = [part for part in ELFFile(file).iter_segments() if part["p_vaddr"] == 0]
        vectors = struct.unpack_from("<64I", first.data())
    thumb = 1  # code is called with this bit set
    assert vectors[0] == addresses["stack_end"]
    assert vectors[1] == addresses["reset_handler"] | thumb
    for exception in (*range(2, 8), 11, 12, 14):
        assert vectors[exception] == addresses["fault_handler"] | thumb
    assert vectors[15] == addresses["systick_handler"] | thumb
    registers = (firmware_folder() / "boards" / board / "board_registers.h").read_text()
    interrupt = int(re.search(r"RECEIVE_INTERRUPT (\d+)u", registers)[1])
    assert vectors[16 + interrupt] == addresses["uart_receive_handler"] | thumb


@pytest.mark.parametrize("board", WITHOUT_FLOATS)
def test_a_core_without_floats_gets_none(images, board):
    image = images(board, "linear")
    assert "TAG_FP_ARCH" not in build_attributes(image)
    assert not {mnemonic for mnemonic, _ in instructions(image) if mnemonic.startswith("v")}
    # nor the library's, which would cost kilobytes
    names = read_symbols(image).addresses
    assert not [name for name in names if re.match("__aeabi_[fd]|__(add|mul|div)[sd]f3", name)]


def test_what_has_floats_uses_them(images):
    """The test above would find them."""
    assert build_attributes(images("mps2-an386", "linear"))["TAG_FP_ARCH"] > 0


def test_code_for_a_cortex_m0_has_no_instruction_of_a_larger_core(images):
    found = instructions(images("mps2-an385-m0", "linear"))
    assert {mnemonic for mnemonic, size in found if size == 4} <= LONG_OF_ARMV6M
    assert not [mnemonic for mnemonic, _ in found if SHORT_OF_ARMV7M.fullmatch(mnemonic)]
    larger = instructions(images("mps2-an385", "linear"))
    assert {mnemonic for mnemonic, size in larger if size == 4} - LONG_OF_ARMV6M
