"""The boards: firmware/boards/<name>/board.toml, one folder a board."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from entrain.deploy.board_files import BoardFile, Text, board_named, read_board_file
from entrain.deploy.errors import BoardError
from entrain.deploy.meters.modelled import CostCoefficients


class Board(BoardFile):
    """A board that firmware is built for, as its board.toml describes it.

    Attributes:
        cpu: the core, for instance ``Cortex-M4F``.
        isa: the compiler's flags that choose the instruction set.
        mhz: the core's clock in megahertz.
        macs_per_instruction: multiply-adds of 8-bit numbers that one instruction does at most.
        flash_bytes: memory for code and constants, in bytes.
        ram_bytes: memory for variables and stack, in bytes.
        state: ``emulated`` if QEMU stands in for it, ``hardware`` if only a real board will do.
        flasher: a key of ``entrain.deploy.flash.FLASHERS``.
        emulator: QEMU's name of the machine, or None.
        llvm_triple: LLVM's name of the instruction set, for comparisons with it, or None.
        cost: coefficients from counted instructions to modelled cycles and energy, or None.
    """

    cpu: Text
    isa: tuple[Annotated[str, Field(pattern="^-m")], ...]
    mhz: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    macs_per_instruction: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    flash_bytes: Annotated[int, Field(gt=0)]
    ram_bytes: Annotated[int, Field(gt=0)]
    state: Literal["emulated", "hardware"]
    flasher: Text
    emulator: Text | None = None
    llvm_triple: Text | None = None
    cost: CostCoefficients | None = None

    @property
    def core(self) -> str:
        """The core as the compiler calls it, such as ``cortex-m4``; empty if no flag says it."""
        flags = (flag.removeprefix("-mcpu=") for flag in self.isa if flag.startswith("-mcpu="))
        return next(flags, "")


def firmware_folder() -> Path:
    """The folder of the firmware's sources.

    Raises:
        BoardError: this installation has no firmware.
    """
    spec = importlib.util.find_spec("entrain.firmware")
    if spec is None or spec.origin is None:
        raise BoardError(
            "the firmware's sources are not installed", remedy="install entrain-edge again"
        )
    return Path(spec.origin).parent


def boards() -> dict[str, Board]:
    """Every board by name, in alphabetical order.

    Raises:
        BoardError: a board file is wrong; with file and line.
    """
    files = sorted(firmware_folder().glob("boards/*/board.toml"))
    return {board.name: board for board in map(read_board, files)}


def find_board(name: str) -> Board:
    """The board called ``name``.

    Raises:
        BoardError: there is none (the error lists those that exist), or its file is wrong.
    """
    return board_named(name, boards(), "board")


def read_board(path: Path) -> Board:
    """The board that the file ``path`` (…/<name>/board.toml) describes.

    Raises:
        BoardError: see :func:`~entrain.deploy.board_files.read_board_file`.
    """
    return read_board_file(path, Board)
