"""What the flow has to know of a family of FPGAs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from entrain.fpga.back_end.resources import Resources
from entrain.fpga.generation.verilog import Pace

Cells = Mapping[str, int]


@dataclass(frozen=True)
class Family:
    """How designs are made for a family: the names of tools and files, and their arguments.

    The tools run in a folder that holds ``netlist.json`` and the board's constraints, and leave
    there what they make; so all files are named without their folder.

    Attributes:
        define: the macro that is defined for the Verilog sources.
        devices: what each device is called by the tools, by its maker's name.
        synthesis: the command of yosys that synthesises a design.
        cells: a file of modules that synthesis takes for cells, and that it puts in afterwards; or
            None.
        placer: the program that places and routes.
        placing: its arguments, from the tools' name of the device, the package, and the file of
            constraints.
        placed: the file that it makes.
        packer: the program that makes a bitstream of that.
        packing: its arguments, from the tools' name of the device.
        bitstream: the file that it makes.
        resources: what a design needs, from its cells by type after synthesis, and the placer's
            counts of what is used.
        fmax_mhz: the highest clock in megahertz, from the folder in which the placer ran.
        pace: of the blocks that are generated for it.
        untimed: what the highest clock leaves out of account, in words; empty if nothing.
    """

    define: str
    devices: Mapping[str, str]
    synthesis: str
    placer: str
    placing: Callable[[str, str, str], list[str]]
    placed: str
    packer: str
    packing: Callable[[str], list[str]]
    bitstream: str
    resources: Callable[[Cells, Cells], Resources]
    fmax_mhz: Callable[[Path], float]
    pace: Pace
    cells: Path | None = None
    untimed: str = ""

    @property
    def clock_said(self) -> str:
        """How the highest clock was found, in a sentence."""
        left_out = f", without {self.untimed}" if self.untimed else ""
        return f"MHz are modelled: static timing analysis of the routed design{left_out}."


def count(cells: Cells, *prefixes: str) -> int:
    """How many cells are of a type that begins with one of ``prefixes``."""
    return sum(number for kind, number in cells.items() if kind.startswith(prefixes))


def reported_fmax_mhz(folder: Path) -> float:
    """The highest clock that nextpnr reports, in megahertz; of several clocks the lowest."""
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return min(float(clock["achieved"]) for clock in report["fmax"].values())
