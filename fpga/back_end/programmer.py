"""Putting a bitstream on a board: openFPGALoader."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from entrain.deploy.errors import (
    DeviceDenied,
    DeviceError,
    DeviceMissing,
    EntrainError,
    ToolError,
    UsageError,
)
from entrain.fpga.back_end.tools import tool_path, tool_version
from entrain.fpga.boards import FpgaBoard

LOADER = "openfpgaloader-cli"  # runs the openFPGALoader on the PATH if there is one, else its own

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_FAILED = re.compile(r"\bFAIL\b")  # a verification that fails ends with exit status 0
_LIBRARY = re.compile(r"error while loading shared libraries: (\S+):")

_MISSING = "connect the board by USB, give it power, and see that lsusb lists it"
_DENIED = (
    "let your user at the board: put openFPGALoader's 99-openfpgaloader.rules into "
    "/etc/udev/rules.d, run `sudo udevadm control --reload-rules && sudo udevadm trigger`, join "
    "the group plugdev, and plug the board in again"
)
_NO_CMSIS_DAP = (
    "this openFPGALoader was built without CMSIS-DAP, which the board's programmer speaks: put one "
    "built with it on the PATH, such as a Linux distribution's (apt install openfpgaloader)"
)

# What openFPGALoader prints, and what it means: libftdi's -3 is no such device, its -4 and
# libusb's access error are no permission (issues 28 and 245 of trabucayre/openFPGALoader).
_MEANINGS: tuple[tuple[str, type[EntrainError], str, str], ...] = (
    ("ftdi device: -3", DeviceMissing, "the board is not connected", _MISSING),
    ("No cable found", DeviceMissing, "the board is not connected", _MISSING),
    ("no device found", DeviceMissing, "the programmer answers, but no FPGA behind it", _MISSING),
    ("No CMSIS-DAP v1 device", DeviceMissing, "the board is not connected", _MISSING),
    ("no USB backend available", DeviceMissing, "the board is not connected", _MISSING),
    ("ftdi device: -4", DeviceDenied, "this user may not use the board's USB port", _DENIED),
    ("LIBUSB_ERROR_ACCESS", DeviceDenied, "this user may not use the board's USB port", _DENIED),
    ("insufficient permissions", DeviceDenied, "this user may not use the USB port", _DENIED),
    ("Check permissions for", DeviceDenied, "this user may not use the USB port", _DENIED),
    ("cmsisdap was not enabled", ToolError, "openFPGALoader cannot speak CMSIS-DAP", _NO_CMSIS_DAP),
    ("cannot find board", ToolError, "openFPGALoader does not know the board", "update it"),
)


def command(board: FpgaBoard, bitstream: Path) -> list[str]:
    """The command line that writes ``bitstream`` to the board's flash memory and compares it."""
    options = ["--board", board.loader, "--write-flash", "--verify"]
    return [str(tool_path(LOADER)), *options, str(bitstream)]


def program(board: FpgaBoard, bitstream: Path) -> None:
    """Write ``bitstream`` to the flash memory of ``board``, from which the FPGA is configured.

    Raises:
        UsageError: there is no such file.
        ToolError: openFPGALoader is not installed, does not start, or cannot do this board.
        DeviceMissing: no board is connected.
        DeviceDenied: the operating system refuses access to its port.
        DeviceError: anything else that openFPGALoader complains of.
    """
    if not bitstream.is_file():
        raise UsageError(
            "there is no such bitstream", where=str(bitstream), remedy="build the block first"
        )
    tool_version(LOADER)
    ended = subprocess.run(
        command(board, bitstream), capture_output=True, text=True, errors="replace", check=False
    )
    printed = _COLOURS.sub("", ended.stdout + ended.stderr)
    if ended.returncode != 0 or _FAILED.search(printed):
        raise meaning(printed, board)


def meaning(printed: str, board: FpgaBoard) -> EntrainError:
    """What the words that openFPGALoader failed with mean, and what to do."""
    library = _LIBRARY.search(printed)
    if library:
        return ToolError(
            f"openFPGALoader does not start: the library {library[1]} is not installed",
            remedy="on Debian and Ubuntu: apt install libftdi1-2 libusb-1.0-0",
        )
    for words, kind, what, remedy in _MEANINGS:
        if words.lower() in printed.lower():
            return kind(what, where=board.name, remedy=remedy)
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    return DeviceError(
        f"openFPGALoader failed: {lines[-1] if lines else 'it printed nothing'}",
        where=board.name,
        remedy="plug the board in again; if that does not help, try openFPGALoader by itself",
    )
