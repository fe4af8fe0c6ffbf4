"""The whole back end: from Verilog to a bitstream, and what the design costs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from entrain.deploy.errors import UsageError
from entrain.fpga.back_end.bitstream import Bitstream, pack
from entrain.fpga.back_end.families import FAMILIES
from entrain.fpga.back_end.place_and_route import Layout, place_and_route
from entrain.fpga.back_end.synthesis import Design, Netlist, synthesise
from entrain.fpga.boards import FpgaBoard
from entrain.fpga.progress import Told, tell_nobody

SEEDS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Cost:
    """What a design needs of an FPGA (counted), and how fast it may run (nextpnr's analysis).

    Attributes:
        luts: look-up tables of four inputs, or logic cells on iCE40.
        ffs: flip-flops.
        dsps: multipliers of 16x16 or 18x18.
        brams: block RAMs.
        fmax_mhz: the highest clock in megahertz, by the placer's seed.
    """

    luts: int
    ffs: int
    dsps: int
    brams: int
    fmax_mhz: Mapping[int, float]

    @property
    def worst_mhz(self) -> float:
        """The slowest seed's highest clock, in megahertz."""
        return min(self.fmax_mhz.values())

    @property
    def median_mhz(self) -> float:
        """The median over the seeds of the highest clock, in megahertz."""
        return statistics.median(self.fmax_mhz.values())


@dataclass(frozen=True)
class Implementation:
    """A design on a board: its netlist, its layouts, the bitstream of the fastest, its cost."""

    netlist: Netlist
    layouts: tuple[Layout, ...]
    bitstream: Bitstream
    cost: Cost


def implement(
    design: Design,
    board: FpgaBoard,
    folder: Path,
    *,
    seeds: Sequence[int] = SEEDS,
    target_mhz: float | None = None,
    told: Told = tell_nobody,
) -> Implementation:
    """Synthesise ``design``, place and route it with every seed, make the fastest's bitstream.

    Every step's result and log are kept in ``folder``, by the content of what it was made of: the
    same design costs nothing the second time.

    Args:
        design: sources and top module.
        board: for its FPGA and pins.
        folder: where results are kept; it may be one for all designs and boards.
        seeds: of the placer, one or more.
        target_mhz: the clock to strive for, in megahertz; the board's own unless given.
        told: hears how far it is.

    Raises:
        UsageError: no seed, an unreadable source, or nothing clocked.
        DoesNotFit: the FPGA has too few cells of a kind.
        ToolError: a tool is not installed.
        FpgaToolFailed: a tool refuses the design.
    """
    if not seeds:
        raise UsageError("placing needs a seed at least")
    target, steps = target_mhz or board.clock_mhz, len(seeds) + 2
    told(0, steps, "synthesise")
    netlist = synthesise(design, board, folder)
    layouts: list[Layout] = []
    for done, seed in enumerate(seeds, 1):
        told(done, steps, f"place and route, seed {seed}")
        layouts.append(place_and_route(netlist, board, folder, seed=seed, target_mhz=target))
    told(steps - 1, steps, "bitstream")
    fastest = max(layouts, key=lambda layout: layout.fmax_mhz)
    bitstream = pack(fastest, board, folder)
    told(steps, steps, f"{fastest.fmax_mhz:.1f} MHz with seed {fastest.seed}")
    return Implementation(netlist, tuple(layouts), bitstream, cost(netlist, layouts, board))


def cost(netlist: Netlist, layouts: Sequence[Layout], board: FpgaBoard) -> Cost:
    """What the design of ``netlist`` costs, which has one layout or more."""
    needed = FAMILIES[board.family].resources(netlist.cells, layouts[0].used)
    return Cost(
        luts=needed.luts,
        ffs=needed.ffs,
        dsps=needed.dsps,
        brams=needed.brams,
        fmax_mhz={layout.seed: layout.fmax_mhz for layout in layouts},
    )
