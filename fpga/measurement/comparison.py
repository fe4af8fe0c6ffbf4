"""The blocks side by side on boards: cycles and accesses, cells, highest clock, toggles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from entrain.deploy.errors import DoesNotFit
from entrain.fpga.back_end.families import FAMILIES
from entrain.fpga.back_end.families.family import Cells, count
from entrain.fpga.back_end.implementation import SEEDS, cost
from entrain.fpga.back_end.pins import pinned
from entrain.fpga.back_end.place_and_route import place_and_route
from entrain.fpga.back_end.resources import Resources
from entrain.fpga.back_end.synthesis import synthesise
from entrain.fpga.boards import FpgaBoard
from entrain.fpga.built import kept_module
from entrain.fpga.measurement.activity import bare, throughput, toggles
from entrain.fpga.measurement.blocks import Sizes, block_named
from entrain.fpga.progress import Told
from entrain.fpga.simulators.verilator import Module
from entrain.fpga.verification.implementations import block_of
from entrain.fpga.verification.vectors import CoreTrial

MEASURED, TOGGLED = 4, 2  # sequences that are run: of the Verilog, and of the netlist


@dataclass(frozen=True)
class Compared:
    """A block of one size on one board.

    Attributes:
        block: a name of ``BLOCKS``.
        board: its name.
        whole: it is a whole operator, queries in and contexts out; else a part of one.
        sizes: of the block.
        cycles: a query, its share of loading keys and values with it (counted).
        latency: cycles to the first answer.
        reads: words read from memories, a query.
        writes: words written to memories, a query.
        cells: of the block alone, after synthesis.
        fmax_mhz: the highest clock by the placer's seed, of the block behind two shift registers;
            empty where it does not fit.
        toggles: nets toggling in the synthesised netlist, a query, without delays: relative; None
            where the family's cells cannot be simulated.
    """

    block: str
    board: str
    whole: bool
    sizes: Sizes
    cycles: float
    latency: int
    reads: float
    writes: float
    cells: Resources
    fmax_mhz: Mapping[int, float]
    toggles: float | None

    @property
    def worst_mhz(self) -> float | None:
        """The slowest seed's highest clock."""
        return min(self.fmax_mhz.values(), default=None)

    @property
    def queries_per_second(self) -> float | None:
        """At that clock."""
        return None if self.worst_mhz is None else 1e6 * self.worst_mhz / self.cycles

    @property
    def cells_times_cycles(self) -> float:
        """Look-up tables times cycles a query."""
        return self.cells.luts * self.cycles


def compare(
    folder: Path,
    blocks: Sequence[tuple[str, Sizes]],
    boards: Sequence[FpgaBoard],
    *,
    seeds: Sequence[int] = SEEDS[:1],
    told: Told,
) -> list[Compared]:
    """Measure all blocks, each of its sizes, on all boards; everything is kept in ``folder``.

    Raises:
        UsageError: an unknown block, or one of such sizes.
        ToolError: a tool is missing or failed.
    """
    jobs = [(name, sizes, board) for name, sizes in blocks for board in boards]
    rows = []
    for done, (name, sizes, board) in enumerate(jobs):
        told(done, len(jobs), f"{name} on {board.name}")
        rows.append(_compared(folder, name, board, sizes, seeds))
    told(len(jobs), len(jobs), "")
    return rows


def _compared(
    folder: Path, name: str, board: FpgaBoard, sizes: Sizes, seeds: Sequence[int]
) -> Compared:
    trial = block_named(name, sizes, MEASURED)
    pace = FAMILIES[board.family].pace
    through = throughput(trial, folder, pace)
    module = kept_module(block_of(trial), folder, pace)
    return Compared(
        name,
        board.name,
        not isinstance(trial, CoreTrial),
        sizes,
        through.cycles,
        through.latency,
        sum(through.reads.values()),
        sum(through.writes.values()),
        block_cells(module, board, folder),
        _clocks(module, board, folder, seeds),
        toggles(block_named(name, sizes, TOGGLED), board, folder),
    )


def _clocks(
    module: Module, board: FpgaBoard, folder: Path, seeds: Sequence[int]
) -> Mapping[int, float]:
    netlist = synthesise(pinned(module, folder / f"pins-{module.top}"), board, folder)
    try:
        layouts = [
            place_and_route(netlist, board, folder, seed=seed, target_mhz=2 * board.clock_mhz)
            for seed in seeds
        ]
    except DoesNotFit:
        return {}
    return cost(netlist, layouts, board).fmax_mhz


def block_cells(module: Module, board: FpgaBoard, folder: Path) -> Resources:
    """The cells of the block alone: it is synthesised as if its streams were the FPGA's pins.

    Raises:
        ToolError: yosys is missing, or refuses the block.
    """
    cells = synthesise(bare(module), board, folder).cells
    luts, ffs, dsps, brams = (_sum(cells, kinds) for kinds in CELLS[board.family])
    return Resources(luts=luts, ffs=ffs, dsps=dsps, brams=brams)


def _sum(cells: Cells, kinds: Mapping[str, int]) -> int:
    return sum(weight * count(cells, kind) for kind, weight in kinds.items())


# Cells of yosys by the beginning of their name, and what each counts: look-up tables (an adder of
# two bits takes two), flip-flops, multipliers, block RAMs.
CELLS: dict[str, tuple[Mapping[str, int], ...]] = {
    "ice40": ({"SB_LUT4": 1}, {"SB_DFF": 1}, {"SB_MAC16": 1}, {"SB_RAM40": 1}),
    "ecp5": (
        {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4},
        {"TRELLIS_FF": 1},
        {"MULT18X18D": 1},
        {"DP16KD": 1, "PDPW16KD": 1},
    ),
    "gowin": (
        {"LUT": 1, "ALU": 1},
        {"DFF": 1},
        {"MULT18X18": 1},
        {"SDP": 1, "DPB": 1, "SP": 1, "pROM": 1},
    ),
}
