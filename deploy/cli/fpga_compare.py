"""``entrain fpga compare`` and ``simulate``: what the blocks cost, side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from entrain.deploy.cli.fpga_build import Seeds
from entrain.deploy.cli.fpga_options import (
    BlockName,
    DHead,
    DOsc,
    DValue,
    Lanes,
    Tokens,
    ValueLanes,
    block_of,
    blocks_of,
    fpga_board,
    kept_folder,
    sizes_of,
)
from entrain.deploy.cli.fpga_verify import Blocks
from entrain.deploy.cli.options import AsJson, Quiet, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.sheet import Name, Number, Sheet
from entrain.deploy.cli.stages import names

if TYPE_CHECKING:
    from entrain.fpga.measurement.comparison import Compared

BoardNames = Annotated[
    str, typer.Option("--boards", help="Names of FPGA boards, separated by commas.")
]
Front = Annotated[
    bool,
    typer.Option(
        "--front",
        help="T = 25, 49, 64 and 2, 4, 8 products of scores a cycle; marks what none beats.",
    ),
]


def compare(
    block: Blocks = None,
    boards: BoardNames = "icebreaker,ulx3s",
    tokens: Tokens = 64,
    d_head: DHead = 16,
    d_value: DValue = 16,
    d_osc: DOsc = 2,
    lanes: Lanes = 4,
    value_lanes: ValueLanes = 2,
    front: Front = False,
    seeds: Seeds = 1,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compare the blocks as whole operators: cycles, cells, highest clock, toggles."""
    from entrain.fpga.back_end.families import FAMILIES
    from entrain.fpga.measurement.blocks import BLOCKS
    from entrain.fpga.measurement.comparison import compare as compared
    from entrain.fpga.measurement.front import front as widths
    from entrain.fpga.measurement.front import unbeaten

    out = Output(machine, quiet, verbose)
    sizes = sizes_of(tokens, d_head, d_value, d_osc, lanes, value_lanes)
    chosen = blocks_of(block, list(BLOCKS), "--block")
    targets = [fpga_board(name) for name in names(boards, "--boards")]
    with shown_stages(out) as stages, stages.work("compare") as work:
        rows = compared(
            kept_folder(),
            widths(chosen, sizes) if front else [(name, sizes) for name in chosen],
            targets,
            seeds=range(1, seeds + 1),
            told=work.reach,
        )
    on_front = unbeaten(rows)
    values = [_value(row, best) for row, best in zip(rows, on_front, strict=True)]
    out.result(values, _tables(rows, on_front))
    out.remark(
        "*: no other of its length is better in cycles or look-up tables and as good in both."
    )
    out.remark(
        "Cycles, accesses and toggles are counted in simulation. Toggles are those of iCE40's "
        "cells without delays: they compare blocks, and are no power."
    )
    for board in targets:
        out.remark(f"{board.name}: {FAMILIES[board.family].clock_said}")


def simulate(
    block: BlockName = "oscillator relu",
    tokens: Tokens = 64,
    d_head: DHead = 16,
    d_value: DValue = 16,
    d_osc: DOsc = 2,
    lanes: Lanes = 4,
    value_lanes: ValueLanes = 2,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run a block's Verilog in Verilator and count cycles and memory accesses of a query."""
    from entrain.fpga.measurement.activity import throughput
    from entrain.fpga.measurement.blocks import block_named
    from entrain.fpga.measurement.comparison import MEASURED

    out = Output(machine, quiet, verbose)
    sizes = sizes_of(tokens, d_head, d_value, d_osc, lanes, value_lanes)
    name = block_of(block)
    trial = block_named(name, sizes, MEASURED)
    with shown_stages(out) as stages, stages.work(f"simulate {name}"):
        found = throughput(trial, kept_folder())
    rows = [
        ("cycles a query", f"{found.cycles:,.1f}"),
        ("cycles to the first answer", f"{found.latency:,}"),
        *((f"reads of {name}", f"{number:,.1f}") for name, number in found.reads.items()),
        *((f"writes to {name}", f"{number:,.1f}") for name, number in found.writes.items()),
    ]
    value = {"block": name, **asdict(sizes), **asdict(found)}
    out.result(value, Sheet((Name("a query"), Number("counted")), rows))


def _value(row: Compared, on_front: bool) -> dict[str, Any]:
    return {
        "block": row.block,
        "board": row.board,
        **asdict(row.sizes),
        "cycles": row.cycles,
        "latency_cycles": row.latency,
        **asdict(row.cells),
        "fmax_kind": "modelled",
        "fmax_mhz": row.worst_mhz,
        "fmax_by_seed": {str(seed): mhz for seed, mhz in row.fmax_mhz.items()},
        "queries_per_second": row.queries_per_second,
        "toggles": row.toggles,
        "memory_reads": row.reads,
        "memory_writes": row.writes,
        "cycles_times_luts": row.cells_times_cycles,
        "on_front": on_front,
    }


def _tables(rows: list[Compared], on_front: list[bool]) -> Group:
    marked = list(zip(rows, on_front, strict=True))
    boards = dict.fromkeys(row.board for row in rows)
    return Group(*(_table(board, [m for m in marked if m[0].board == board]) for board in boards))


def _table(board: str, rows: list[tuple[Compared, bool]]) -> Sheet:
    titles = ("T", "lanes", "cycles", "LUT", "FF", "DSP", "BRAM", "MHz", "queries/s", "toggles")
    shown = [
        (
            f"{row.block} *" if on_front else row.block,
            str(row.sizes.tokens),
            str(row.sizes.lanes),
            f"{row.cycles:,.0f}",
            f"{row.cells.luts:,}",
            f"{row.cells.ffs:,}",
            str(row.cells.dsps),
            str(row.cells.brams),
            "too large" if row.worst_mhz is None else f"{row.worst_mhz:.1f}",
            "" if row.queries_per_second is None else f"{row.queries_per_second:,.0f}",
            "" if row.toggles is None else f"{row.toggles:,.0f}",
        )
        for row, on_front in rows
    ]
    return Sheet((Name("block"), *map(Number, titles)), shown, title=board)
