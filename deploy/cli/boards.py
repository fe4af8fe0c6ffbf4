"""``entrain boards``: what there is to build for and measure on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrain.deploy.cli.options import AsJson, Quiet, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.sheet import Column, Number, Sheet, Words

if TYPE_CHECKING:
    from entrain.deploy.boards import Board


def list_boards(machine: AsJson = False, quiet: Quiet = False, verbose: Verbose = False) -> None:
    """List the boards, with their core, memory and state."""
    from entrain.deploy.boards import boards

    found = list(boards().values())
    Output(machine, quiet, verbose).result([_value(board) for board in found], _table(found))


def _value(board: Board) -> dict[str, object]:
    return {
        "name": board.name,
        "state": board.state,
        "title": board.title,
        "cpu": board.cpu,
        "mhz": board.mhz,
        "flash_bytes": board.flash_bytes,
        "ram_bytes": board.ram_bytes,
    }


def _table(found: list[Board]) -> Sheet:
    rows = [
        (
            board.name,
            board.cpu,
            f"{board.mhz:g}",
            f"{board.flash_bytes // 1024} KiB",
            f"{board.ram_bytes // 1024} KiB",
            board.state,
            board.title,
        )
        for board in found
    ]
    numbers = map(Number, ("MHz", "flash", "RAM"))
    return Sheet((Column("board"), Column("core"), *numbers, Words("state"), Words("title")), rows)
