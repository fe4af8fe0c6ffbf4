"""From a netlist to a layout: nextpnr chooses a place for every cell and a way for every net."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from entrain.deploy.errors import DoesNotFit, FpgaToolFailed, UsageError
from entrain.fpga.back_end import families
from entrain.fpga.back_end.families import FAMILIES
from entrain.fpga.back_end.synthesis import Netlist
from entrain.fpga.back_end.tools import run_tool, tool_version
from entrain.fpga.boards import FpgaBoard
from entrain.fpga.kept import kept, log_of

_USED = re.compile(r"^Info:\s+(\w+): +(\d+)/ *(\d+) +\d+%", re.MULTILINE)


@dataclass(frozen=True)
class Layout:
    """A netlist placed and routed.

    Attributes:
        path: the file that the bitstream is made of.
        seed: of the placer's random numbers.
        fmax_mhz: the highest clock that timing analysis allows, in megahertz; of several clocks
            the lowest. The family says what it leaves out of account.
        utilisation: cells used and cells that there are, by nextpnr's name of their type.
        log: everything that nextpnr printed.
    """

    path: Path
    seed: int
    fmax_mhz: float
    utilisation: Mapping[str, tuple[int, int]]
    log: Path

    @property
    def used(self) -> dict[str, int]:
        """Cells used, by nextpnr's name of their type."""
        return {kind: used for kind, (used, _) in self.utilisation.items()}


def place_and_route(
    netlist: Netlist, board: FpgaBoard, folder: Path, *, seed: int, target_mhz: float
) -> Layout:
    """The layout of ``netlist`` on ``board``, kept in ``folder``.

    A layout slower than ``target_mhz`` is a layout too: whoever asks decides what is enough.

    Raises:
        DoesNotFit: the FPGA has too few cells of a kind.
        UsageError: nothing in the design is clocked.
        ToolError: nextpnr is not installed.
        FpgaToolFailed: nextpnr refuses the netlist, for instance a port without a pin.
    """
    family = FAMILIES[board.family]
    pins = board.constraints
    arguments = ["--json", "netlist.json", "--seed", str(seed), "--freq", f"{target_mhz:g}"]
    arguments += ["--timing-allow-fail", "--report", "report.json"]
    arguments += family.placing(family.devices[board.device], board.package, pins.name)

    def make(made: Path, log: Path) -> None:
        shutil.copyfile(netlist.path, made / "netlist.json")
        shutil.copyfile(pins, made / pins.name)
        try:
            run_tool(family.placer, arguments, made, log)
        except FpgaToolFailed as error:
            too_large = _overfull(log, board)
            if too_large is None:
                raise
            raise too_large from error
        _require_clock(made, log)
        (made / "fmax.json").write_text(json.dumps(family.fmax_mhz(made)), encoding="utf-8")
        (made / "netlist.json").unlink()

    made_of = [tool_version(family.placer), *arguments, _analysis()]
    files = [netlist.path.read_bytes(), pins.read_bytes()]
    place = kept(folder, f"layout-{board.name}", [*made_of, *files], make)
    report = json.loads((place / "report.json").read_text(encoding="utf-8"))
    return Layout(
        path=place / family.placed,
        seed=seed,
        fmax_mhz=json.loads((place / "fmax.json").read_text(encoding="utf-8")),
        utilisation={
            kind: (cells["used"], cells["available"])
            for kind, cells in report["utilization"].items()
        },
        log=log_of(place),
    )


def _analysis() -> str:
    """Our own part in the timing analysis: what it says of a layout is kept with it."""
    sources = sorted(Path(families.__file__).parent.glob("*.py"))
    return "".join(source.read_text(encoding="utf-8") for source in sources)


def _require_clock(made: Path, log: Path) -> None:
    if not json.loads((made / "report.json").read_text(encoding="utf-8"))["fmax"]:
        raise UsageError(
            "no register in the design follows another, so it has no highest clock",
            where=str(log),
            remedy="put registers before and after what is to be timed",
        )


def _overfull(log: Path, board: FpgaBoard) -> DoesNotFit | None:
    """What there is too little of, by the utilisation that nextpnr prints before it places."""
    printed = log.read_text(encoding="utf-8", errors="replace")
    counts = {kind: (int(used), int(there)) for kind, used, there in _USED.findall(printed)}
    short = {kind: used - there for kind, (used, there) in counts.items() if used > there}
    if not short:
        return None
    parts = [
        f"{kind}: needs {counts[kind][0]:,} of {counts[kind][1]:,}, {over:,} over"
        for kind, over in short.items()
    ]
    return DoesNotFit(
        f"the design does not fit: {'; '.join(parts)}",
        where=board.name,
        remedy=f"make the block smaller, or choose a larger board; nextpnr's words: {log}",
        short=short,
    )
