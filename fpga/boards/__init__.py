"""The FPGA boards: fpga/boards/<name>/board.toml and its pins, one folder a board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from entrain.deploy.errors import BoardError, UsageError
from entrain.deploy.toml import place, read_toml
from entrain.fpga.families import FAMILIES
from entrain.fpga.resources import Resources

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Text = Annotated[str, Field(min_length=1)]
FOLDER = Path(__file__).parent


class FpgaBoard(BaseModel):
    """A board with an FPGA, as its board.toml describes it.

    Attributes:
        name: the folder's name, by which commands call the board.
        title: the board's full name, for a person.
        family: a key of ``entrain.fpga.families.FAMILIES``.
        device: the FPGA, by its maker's name, as the family's file lists it.
        package: the FPGA's package.
        clock_mhz: the oscillator on the board's pin ``clk``, in megahertz.
        constraints: the file that gives each port its pin (in the board's folder when read).
        loader: openFPGALoader's name of the board.
        state: ``untried`` until a bitstream has run on a real board.
        resources: what the FPGA has.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Text
    title: Text
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
    known = fpga_boards()
    if name not in known:
        raise BoardError(
            f"no FPGA board is called {name!r}", remedy=f"boards that exist: {', '.join(known)}"
        )
    return known[name]


def read_fpga_board(path: Path) -> FpgaBoard:
    """The board that the file ``path`` (…/<name>/board.toml) describes.

    Raises:
        BoardError: the file cannot be read, is not TOML, has an unknown key, lacks one, or has a
            value that does not make sense; with file and line.
    """
    try:
        board = FpgaBoard.model_validate(read_toml(path))
    except UsageError as error:
        raise BoardError(error.what, where=error.where, remedy=error.remedy) from error
    except ValidationError as error:
        raise _described(error.errors()[0], path) from error
    pins = path.parent / board.constraints
    _require(board.name == path.parent.name, path, "name", f"the folder is {path.parent.name!r}")
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


def _described(error: ErrorDetails, path: Path) -> BoardError:
    keys = [str(key) for key in error["loc"]]
    dotted = ".".join(keys)
    if error["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        table = Resources.__dataclass_fields__ if len(keys) > 1 else FpgaBoard.model_fields
        return BoardError(
            f"unknown key {dotted!r}",
            where=place(path, keys),
            remedy=f"remove it, or correct its spelling; keys that exist: {', '.join(table)}",
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
