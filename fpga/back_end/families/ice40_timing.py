"""The highest clock of an iCE40 layout, the multipliers included.

nextpnr takes every SB_MAC16 for registered on all sides: a path ends where it enters one, and
another begins where it leaves, so a product costs no time. This follows the paths through, over the
delays that nextpnr writes down (SDF), with the multipliers' own.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from entrain.deploy.errors import UsageError
from entrain.fpga.back_end.families.family import reported_fmax_mhz
from entrain.fpga.back_end.families.ice40_multiplier import Multiplier, multiplier

_CLOCKS = ("CLK", "RCLK", "WCLK", "CLOCK")
_DELAYS = r" \([^:]*:[^:]*:([^:)]+)\) \([^:]*:[^:]*:([^:)]+)\)"
_NET = re.compile(r"\(INTERCONNECT (\S+) (\S+)" + _DELAYS)
_CELL = re.compile(r'\(CELLTYPE "(.*)"\)\s+\(INSTANCE (\S*)\)')
_PATH = re.compile(r"\(IOPATH (\S+) (\S+)" + _DELAYS)
_SETUP = re.compile(r"\(SETUPHOLD \(\w+ (\S+)\) \(\w+ \S+\) \([^:]*:[^:]*:([^:)]+)\)")


@dataclass
class _Graph:
    """Pins and the delays between them, in picoseconds: from registers (starts) to them (ends)."""

    edges: dict[str, list[tuple[str, float]]] = field(default_factory=lambda: defaultdict(list))
    starts: dict[str, float] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)

    def longest(self) -> float:
        """The longest way from a start to an end; 0 if there is none.

        Raises:
            UsageError: a combinational loop.
        """
        arrivals = dict(self.starts)
        for pin in self._in_order():
            for sink, delay in self.edges.get(pin, ()):
                if pin in arrivals:
                    arrivals[sink] = max(arrivals.get(sink, 0.0), arrivals[pin] + delay)
        ways = (arrivals[pin] + end for pin, end in self.ends.items() if pin in arrivals)
        return max(ways, default=0.0)

    def _in_order(self) -> Iterator[str]:
        """Every pin after all that lead to it."""
        waiting: dict[str, int] = defaultdict(int)
        for sinks in self.edges.values():
            for sink, _ in sinks:
                waiting[sink] += 1
        ready = [pin for pin in self.edges if pin not in waiting]
        while ready:
            pin = ready.pop()
            yield pin
            for sink, _ in self.edges.get(pin, ()):
                waiting[sink] -= 1
                if waiting[sink] == 0:
                    ready.append(sink)
        if any(waiting.values()):
            raise UsageError(
                "the design has a combinational loop, so it has no highest clock",
                remedy="break the loop with a register",
            )


def fmax_mhz(folder: Path) -> float:
    """The highest clock in megahertz of the layout in ``folder``.

    Args:
        folder: with ``report.json`` and ``layout.sdf`` of nextpnr, and the ``netlist.json`` that
            it was made of.

    Raises:
        UsageError: a combinational loop.
    """
    multipliers = _multipliers(folder / "netlist.json")
    reported = reported_fmax_mhz(folder)
    if not multipliers:
        return reported
    longest = longest_path(folder / "layout.sdf", multipliers)
    return min(reported, 1e6 / longest) if longest else reported


def longest_path(sdf: Path, multipliers: Mapping[str, Multiplier]) -> float:
    """The longest way between two registers of one clock, in picoseconds; 0 if there is none.

    Args:
        sdf: the delays that nextpnr wrote.
        multipliers: every SB_MAC16 by its name in the netlist.

    Raises:
        UsageError: a combinational loop.
    """
    text = sdf.read_text(encoding="utf-8")
    graph = _Graph()
    for source, sink, *delays in _NET.findall(text):
        graph.edges[source].append((sink, max(map(float, delays))))
    places = list(_CELL.finditer(text))
    ends = [place.start() for place in places[1:]] + [len(text)]
    for place, end in list(zip(places, ends, strict=True))[1:]:  # the first is the whole design
        kind, instance = place[1], place[2]
        body = text[place.end() : end]
        if kind == "ICESTORM_DSP":
            name = instance.replace("\\", "").removesuffix("_DSP")
            _add_multiplier(graph, instance, body, multipliers[name])
        else:
            _add_cell(graph, instance, body)
    return graph.longest()


def _add_cell(graph: _Graph, instance: str, body: str) -> None:
    for source, sink, *delays in _PATH.findall(body):
        delay = max(map(float, delays))
        if source in _CLOCKS:
            graph.starts[f"{instance}/{sink}"] = delay
        else:
            graph.edges[f"{instance}/{source}"].append((f"{instance}/{sink}", delay))
    for pin, setup in _SETUP.findall(body):
        end = f"{instance}/{pin}"
        graph.ends[end] = max(graph.ends.get(end, 0.0), float(setup))


def _add_multiplier(graph: _Graph, instance: str, body: str, cell: Multiplier) -> None:
    # Inputs meet in one point, from which all outputs come; of two halves each has its own.
    inputs = {pin for pin, _ in _SETUP.findall(body)}
    outputs = {sink for source, sink, *_ in _PATH.findall(body) if source in _CLOCKS}
    for pin in outputs:
        middle = f"{instance}/{_half(pin, cell, 16)}"
        graph.edges[middle].append((f"{instance}/{pin}", 0.0))
        if cell.after is not None:
            graph.starts[f"{instance}/{pin}"] = cell.after
    for pin in inputs:
        port = pin.partition("_")[0]
        through, before = cell.through(port), cell.before(port)
        if through is not None:
            middle = f"{instance}/{_half(pin, cell, 8)}"
            graph.edges[f"{instance}/{pin}"].append((middle, through))
        if before is not None:
            graph.ends[f"{instance}/{pin}"] = before


def _half(pin: str, cell: Multiplier, first_of_upper: int) -> str:
    number = pin.rpartition("_")[2]
    upper = cell.dual and number.isdigit() and int(number) >= first_of_upper
    return "upper" if upper else "lower"


def _multipliers(netlist: Path) -> dict[str, Multiplier]:
    modules = json.loads(netlist.read_text(encoding="utf-8"))["modules"].values()
    return {
        name: multiplier(cell["parameters"])
        for module in modules
        for name, cell in module["cells"].items()
        if cell["type"] == "SB_MAC16"
    }
