"""``entrain fpga ...``: the commands, and the boards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from entrain.deploy.cli.fpga_build import build, flash
from entrain.deploy.cli.fpga_compare import compare, simulate
from entrain.deploy.cli.fpga_split import split
from entrain.deploy.cli.fpga_verify import verify
from entrain.deploy.cli.options import AsJson, Quiet, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.sheet import Column, Number, Sheet, Words

if TYPE_CHECKING:
    from entrain.fpga.boards import FpgaBoard


def list_boards(machine: AsJson = False, quiet: Quiet = False, verbose: Verbose = False) -> None:
    """List the FPGA boards, with what their FPGA has and their state."""
    from entrain.fpga.boards import fpga_boards

    found = list(fpga_boards().values())
    Output(machine, quiet, verbose).result([_value(board) for board in found], _table(found))


COMMANDS: dict[str, Callable[..., None]] = {
    "verify": verify,
    "simulate": simulate,
    "compare": compare,
    "split": split,
    "build": build,
    "flash": flash,
    "boards": list_boards,
}


def _value(board: FpgaBoard) -> dict[str, object]:
    return {
        "name": board.name,
        "state": board.state,
        "title": board.title,
        "family": board.family,
        "device": board.device,
        "clock_mhz": board.clock_mhz,
        "luts": board.resources.luts,
        "ffs": board.resources.ffs,
        "dsps": board.resources.dsps,
        "brams": board.resources.brams,
    }


def _table(found: list[FpgaBoard]) -> Sheet:
    rows = [
        (
            board.name,
            board.device,
            f"{board.clock_mhz:g}",
            f"{board.resources.luts:,}",
            str(board.resources.dsps),
            str(board.resources.brams),
            board.state,
            board.title,
        )
        for board in found
    ]
    numbers = map(Number, ("MHz", "LUT", "DSP", "BRAM"))
    return Sheet((Column("board"), Column("FPGA"), *numbers, Words("state"), Words("title")), rows)
