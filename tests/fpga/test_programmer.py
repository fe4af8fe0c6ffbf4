"""openFPGALoader with no board at hand: its command line, and what its complaints become."""

from __future__ import annotations

import pytest

from entrain.deploy.errors import (
    DeviceDenied,
    DeviceError,
    DeviceMissing,
    ToolError,
    UsageError,
)
from entrain.fpga.back_end.programmer import command, meaning, program
from entrain.fpga.boards import find_fpga_board, fpga_boards

BOARD = find_fpga_board("icebreaker")


@pytest.fixture
def bitstream(tmp_path):
    path = tmp_path / "bitstream.bin"
    path.write_bytes(b"\xff\x00\x00\xff\x7e\xaa\x99\x7e")
    return path


def test_the_command_names_the_board_and_verifies(bitstream):
    tool, *options = command(BOARD, bitstream)
    assert tool.endswith("openfpgaloader-cli")
    assert options == ["--board", "ice40_generic", "--write-flash", "--verify", str(bitstream)]


@pytest.mark.parametrize("name", fpga_boards())
def test_the_real_program_finds_no_board_or_says_what_it_lacks(name, bitstream):
    with pytest.raises((DeviceMissing, ToolError)) as caught:
        program(find_fpga_board(name), bitstream)
    # Without libftdi it does not start; built without CMSIS-DAP it cannot do the Colorlight.
    lacks = ("library libftdi1", "CMSIS-DAP")
    assert isinstance(caught.value, DeviceMissing) or any(it in caught.value.what for it in lacks)
    assert caught.value.remedy


def test_no_bitstream(tmp_path):
    with pytest.raises(UsageError, match="no such bitstream"):
        program(BOARD, tmp_path / "absent.bin")


@pytest.mark.parametrize(
    ("printed", "kind", "advice"),
    [
        ("unable to open ftdi device: -3 (device not found)\n", DeviceMissing, "lsusb"),
        ("cmsisDAP: No CMSIS-DAP v1 device found\n", DeviceMissing, "lsusb"),
        ("Error: no device found\n", DeviceMissing, "lsusb"),
        ("unable to open ftdi device: -4 (usb_open() failed)\n", DeviceDenied, "udevadm"),
        ("Couldn't open device. Check permissions for /dev/hidraw0\n", DeviceDenied, "udevadm"),
        ("Jtag: support for cmsisdap was not enabled at compile time\n", ToolError, "apt install"),
        (
            "openFPGALoader: error while loading shared libraries: libftdi1.so.2: cannot open "
            "shared object file: No such file or directory\n",
            ToolError,
            "libftdi1-2",
        ),
        ("Verify write FAIL\n", DeviceError, "plug the board in again"),
        ("", DeviceError, "plug the board in again"),
    ],
)
def test_a_complaint_becomes_what_to_do(printed, kind, advice):
    error = meaning(printed, BOARD)
    assert type(error) is kind
    assert advice in error.remedy
