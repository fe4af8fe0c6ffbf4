"""The FPGA boards: fpga/boards/<name>/board.toml and its pins, one folder a board."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from entrain.deploy.board_files import BoardFile, Text, board_named, read_board_file
from entrain.deploy.errors import BoardError
from entrain.deploy.toml import place
from entrain.fpga.back_end.families import FAMILIES
from entrain.fpga.back_end.resources import Resources

FOLDER = Path(__file__).parent


class FpgaBoard(BoardFile):
    """A board with an FPGA, as its board.toml describes it.

    Attributes:
        family: a key of ``entrain.fpga.back_end.families.FAMILIES``.
        device: the FPGA, by its maker's name, as the family's file lists it.
        package: the FPGA's package.
        clock_mhz: the oscillator on the board's pin ``clk``, in megahertz.
        constraints: the file that gives each port its pin (in the board's folder when read).
        loader: openFPGALoader's name of the board.
        state: ``untried`` until a bitstream has run on a real board.
        resources: what the FPGA has.
    """

    family: Text
    device: Text
    package: Text
    clock_mhz: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    constraints: Path
    loader: Text
    state: Literal["untried", "tried"]
    resources: Resources


def fpga_boards() -> dict[str, FpgaBoard]:
    """Every FPGA board by name, in alphabetical order.

    Raises:
        BoardError: a board file is wrong; with file and line.
    """
    files = sorted(FOLDER.glob("*/board.toml"))
    return {board.name: board for board in map(read_fpga_board, files)}


def find_fpga_board(name: str) -> FpgaBoard:
    """The FPGA board called ``name``.

    Raises:
        BoardError: there is none (the error lists those that exist), or its file is wrong.
    """
    return board_named(name, fpga_boards(), "FPGA board")


def read_fpga_board(path: Path) -> FpgaBoard:
    """The board that the file ``path`` (…/<name>/board.toml) describes.

    Raises:
        BoardError: the file cannot be read, is not TOML, has an unknown key, lacks one, or has a
            value that does not make sense; with file and line.
    """
    board = read_board_file(path, FpgaBoard)
    pins = path.parent / board.constraints
    _require(board.family in FAMILIES, path, "family", f"families: {', '.join(FAMILIES)}")
    devices = FAMILIES[board.family].devices
    _require(board.device in devices, path, "device", f"devices: {', '.join(devices)}")
    _require(pins.is_file(), path, "constraints", f"there is no {pins}")
    return board.model_copy(update={"constraints": pins})


def _require(right: bool, path: Path, key: str, why: str) -> None:
    if not right:
        raise BoardError(
            f"the value of {key!r} does not do: {why}",
            where=place(path, [key]),
            remedy="correct the value; see the other boards",
        )
