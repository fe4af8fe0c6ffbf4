"""The boards: firmware/boards/<name>/board.toml, one folder a board."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from entrain.deploy.errors import BoardError, UsageError
from entrain.deploy.meters.modelled import CostCoefficients
from entrain.deploy.toml import place, read_toml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Text = Annotated[str, Field(min_length=1)]


class Board(BaseModel):
    """A board that firmware is built for, as its board.toml describes it.

    Attributes:
        name: the folder's name, by which commands call the board.
        title: the board's full name, for a person.
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

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Text
    title: Text
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
    known = boards()
    if name not in known:
        raise BoardError(
            f"no board is called {name!r}", remedy=f"boards that exist: {', '.join(known)}"
        )
    return known[name]


def read_board(path: Path) -> Board:
    """The board that the file ``path`` (…/<name>/board.toml) describes.

    Raises:
        BoardError: the file cannot be read, is not TOML, has an unknown key, lacks one, or has a
            value that does not make sense; with file and line.
    """
    try:
        board = Board.model_validate(read_toml(path))
    except UsageError as error:
        raise BoardError(error.what, where=error.where, remedy=error.remedy) from error
    except ValidationError as error:
        raise _described(error.errors()[0], path) from error
    if board.name != path.parent.name:
        raise BoardError(
            f"the board calls itself {board.name!r} but its folder is {path.parent.name!r}",
            where=place(path, ["name"]),
            remedy="give both the same name",
        )
    return board


def _described(error: ErrorDetails, path: Path) -> BoardError:
    keys = [str(key) for key in error["loc"]]
    dotted = ".".join(keys)
    if error["type"] == "extra_forbidden":
        allowed = ", ".join(Board.model_fields)
        return BoardError(
            f"unknown key {dotted!r}",
            where=place(path, keys),
            remedy=f"remove it, or correct its spelling; a board's keys: {allowed}",
        )
    if error["type"] == "missing":
        return BoardError(
            f"the key {dotted!r} is missing", where=str(path), remedy="add it; see the other boards"
        )
    return BoardError(
        f"{dotted or 'the file'}: {error['msg']}",
        where=place(path, keys),
        remedy="correct the value; see the other boards",
    )
