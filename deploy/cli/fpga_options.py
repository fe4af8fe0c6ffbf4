"""Options that the FPGA's commands share, and what they all need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from entrain.deploy.cache import cache_folder
from entrain.deploy.cli.stages import names
from entrain.deploy.errors import concerning

if TYPE_CHECKING:
    from entrain.fpga.boards import FpgaBoard
    from entrain.fpga.measurement.blocks import Sizes

LONGEST = 128

BlockName = Annotated[
    str,
    typer.Argument(
        metavar="[BLOCK]",
        help="settle, 'settle by dynamics', 'oscillator relu', 'oscillator separable', softmax or "
        "'softmax 8 bit'; a dash does for a space.",
    ),
]
FpgaBoardName = Annotated[
    str, typer.Option("--board", help="An FPGA board's name (see `entrain fpga boards`).")
]
Tokens = Annotated[
    int, typer.Option("--tokens", min=1, max=LONGEST, help="Keys of a sequence, and queries.")
]
DHead = Annotated[int, typer.Option("--d-head", min=2, max=64, help="Components of a query.")]
DValue = Annotated[int, typer.Option("--d-value", min=2, max=64, help="Components of a value.")]
DOsc = Annotated[int, typer.Option("--d-osc", min=2, max=64, help="Components of an oscillator.")]
Lanes = Annotated[
    int, typer.Option("--lanes", min=2, max=64, help="Products of scores a cycle, even.")
]
ValueLanes = Annotated[
    int,
    typer.Option(
        "--value-lanes", min=1, max=64, help="Of softmax: products of weights and values a cycle."
    ),
]


def kept_folder() -> Path:
    """Where everything stays that the flow has made once."""
    return cache_folder() / "fpga"


def block_of(text: str) -> str:
    """A block's name, whose words may be joined by dashes."""
    return text.replace("-", " ")


def blocks_of(text: str | None, known: list[str], option: str) -> list[str]:
    """The blocks of a list with commas; without one, all."""
    return known if text is None else [block_of(name) for name in names(text, option)]


def fpga_board(name: str) -> FpgaBoard:
    """The FPGA board that ``--board`` names.

    Raises:
        BoardError: there is none of that name.
    """
    from entrain.fpga.boards import find_fpga_board

    with concerning("--board"):
        return find_fpga_board(name)


def sizes_of(
    tokens: int, d_head: int, d_value: int, d_osc: int, lanes: int, value_lanes: int
) -> Sizes:
    """Sizes, if they go together.

    Raises:
        UsageError: lanes that do not divide a vector evenly.
    """
    from entrain.deploy.errors import UsageError
    from entrain.fpga.measurement.blocks import Sizes

    if lanes % 2 or d_head % lanes:
        raise UsageError(
            f"{lanes} lanes for vectors of {d_head}",
            where="--lanes",
            remedy="an even number that divides the vector",
        )
    if d_value % value_lanes:
        raise UsageError(
            f"{value_lanes} lanes for vectors of {d_value}",
            where="--value-lanes",
            remedy="a number that divides the vector",
        )
    return Sizes(tokens, d_head, d_value, d_osc, lanes, value_lanes)
