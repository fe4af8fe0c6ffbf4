"""``entrain fpga build`` and ``flash``: from a block to a bitstream, and onto a board."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from entrain.deploy.cli.fpga_options import (
    BlockName,
    DHead,
    DOsc,
    DValue,
    FpgaBoardName,
    Lanes,
    Tokens,
    ValueLanes,
    block_of,
    fpga_board,
    kept_folder,
    sizes_of,
)
from entrain.deploy.cli.options import AsJson, Quiet, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.sheet import Column, Number, Sheet
from entrain.deploy.errors import UsageError

if TYPE_CHECKING:
    from entrain.fpga.back_end.implementation import Implementation
    from entrain.fpga.boards import FpgaBoard
    from entrain.fpga.measurement.blocks import Sizes

MOST_SEEDS = 100

Seeds = Annotated[
    int, typer.Option("--seeds", min=1, max=MOST_SEEDS, help="Seeds of the placer that are tried.")
]
BitstreamPath = Annotated[
    Path | None,
    typer.Argument(
        metavar="[BITSTREAM]", help="The file; without it, what was last built for the board."
    ),
]


def build(
    block: BlockName = "oscillator relu",
    board: FpgaBoardName = "icebreaker",
    tokens: Tokens = 64,
    d_head: DHead = 16,
    d_value: DValue = 16,
    d_osc: DOsc = 2,
    lanes: Lanes = 4,
    value_lanes: ValueLanes = 2,
    seeds: Seeds = 5,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Generate a block and its serial bridge, synthesise, place and route, make a bitstream."""
    from entrain.fpga.back_end.families import FAMILIES
    from entrain.fpga.bridge.deployed import implemented

    out = Output(machine, quiet, verbose)
    target = fpga_board(board)
    sizes = sizes_of(tokens, d_head, d_value, d_osc, lanes, value_lanes)
    name = block_of(block)
    with shown_stages(out) as stages, stages.work(f"build {name} for {target.name}") as work:
        made = implemented(name, sizes, target, kept_folder(), seeds=seeds, told=work.reach)
    newest = _newest(target)
    newest.parent.mkdir(parents=True, exist_ok=True)
    newest.write_bytes(made.bitstream.path.read_bytes())
    out.result(_value(name, target, sizes, made), _table(name, target, made))
    out.remark(FAMILIES[target.family].clock_said)
    out.remark(f"bitstream: {made.bitstream.path}")


def flash(
    bitstream: BitstreamPath = None,
    board: FpgaBoardName = "icebreaker",
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write a bitstream to a board's flash memory, from which the FPGA starts."""
    from entrain.fpga.back_end.programmer import program

    out = Output(machine, quiet, verbose)
    target = fpga_board(board)
    path = bitstream or _newest(target)
    if bitstream is None and not path.is_file():
        raise UsageError(
            f"nothing was built for {target.name} yet",
            remedy=f"entrain fpga build --board {target.name}",
        )
    program(target, path)
    out.result(
        {"board": target.name, "bitstream": str(path)}, f"{target.name} now runs {path.name}"
    )


def _newest(board: FpgaBoard) -> Path:
    """Where the bitstream lies that was last built for a board."""
    from entrain.fpga.back_end.families import FAMILIES

    return kept_folder() / f"newest-{board.name}{Path(FAMILIES[board.family].bitstream).suffix}"


def _value(name: str, board: FpgaBoard, sizes: Sizes, made: Implementation) -> dict[str, Any]:
    cost = made.cost
    return {
        "block": name,
        "board": board.name,
        **asdict(sizes),
        "luts": cost.luts,
        "ffs": cost.ffs,
        "dsps": cost.dsps,
        "brams": cost.brams,
        "fmax_kind": "modelled",
        "fmax_mhz": cost.worst_mhz,
        "fmax_median_mhz": cost.median_mhz,
        "fmax_by_seed": {str(seed): mhz for seed, mhz in cost.fmax_mhz.items()},
        "clock_mhz": board.clock_mhz,
        "bitstream": str(made.bitstream.path),
        "logs": [str(layout.log) for layout in made.layouts],
    }


def _table(name: str, board: FpgaBoard, made: Implementation) -> Sheet:
    cost, there = made.cost, board.resources
    rows = [
        ("look-up tables", f"{cost.luts:,}", f"{there.luts:,}"),
        ("flip-flops", f"{cost.ffs:,}", f"{there.ffs:,}"),
        ("multipliers", f"{cost.dsps:,}", f"{there.dsps:,}"),
        ("block RAMs", f"{cost.brams:,}", f"{there.brams:,}"),
        ("MHz, slowest seed", f"{cost.worst_mhz:.1f}", f"{board.clock_mhz:g}"),
        ("MHz, median", f"{cost.median_mhz:.1f}", f"{board.clock_mhz:g}"),
    ]
    columns = (Column(""), Number("needed"), Number("there"))
    return Sheet(columns, rows, title=f"{name} with its bridge on {board.name}")
