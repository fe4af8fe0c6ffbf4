"""``entrain boards``: what there is to build for and measure on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from entrain.deploy.cli.options import AsJson, Quiet, Verbose
from entrain.deploy.cli.output import Output

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


def _table(found: list[Board]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("board", "core"):
        table.add_column(name, no_wrap=True)
    for name in ("MHz", "flash", "RAM"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state")
    table.add_column("title")
    for board in found:
        table.add_row(
            board.name,
            board.cpu,
            f"{board.mhz:g}",
            f"{board.flash_bytes // 1024} KiB",
            f"{board.ram_bytes // 1024} KiB",
            board.state,
            board.title,
        )
    return table
