"""A design with serial pins as a program of this machine: Verilator, and a pseudo-terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

from entrain.fpga.bridge import PATIENCE_SECONDS, Line
from entrain.fpga.primitives import FOLDER
from entrain.fpga.simulation import NOT_NEEDED, call, verilator
from entrain.fpga.synthesis import Design

TESTBENCH = FOLDER / "serial_testbench.cpp"


# Of a simulated board, whose time passes in cycles: a quick line, and patience of many bytes.
SIMULATED = Line("fpga-sim", clocks_per_bit=8, clock_mhz=12, patience=20_000)


SILENCE_MS = 1000 * PATIENCE_SECONDS


def compile_board(
    design: Design, line: Line, folder: Path, *, silence_ms: int = SILENCE_MS
) -> Path:
    """A program that simulates ``design``, whose ports are those of an FPGA board.

    Its only argument is the descriptor of a pseudo-terminal's controlling side.

    Args:
        design: the whole board.
        line: its serial line.
        folder: for what is compiled.
        silence_ms: how long its line is silent, in milliseconds, until its patience ends.

    Raises:
        ToolError: Verilator is missing, or refused the sources.
    """
    verilated, program = folder / "verilated", folder / design.top
    shutil.rmtree(verilated, ignore_errors=True)  # of another design, perhaps
    verilated.mkdir(parents=True)
    root, environment = verilator()
    call(
        [
            str(root / "bin" / "verilator"),
            *("--cc", "--no-timing", "-O3", "-Wno-fatal", "-Wno-lint"),
            *("--top-module", design.top, "--prefix", "Vtop", "--Mdir", str(verilated)),
            *map(str, design.sources),
        ],
        environment,
        folder / "verilator.log",
    )
    include = root / "include"
    headers = [include, include / "vltstd", verilated, folder]
    runtime = [include / name for name in ("verilated.cpp", "verilated_threads.cpp")]
    call(
        [
            *("g++", "-std=gnu++17", "-O1", "-pthread", "-w"),
            *(f"-DVM_{feature}=0" for feature in NOT_NEEDED),
            *(f"-DCLOCKS_PER_BIT={line.clocks_per_bit}", f"-DPATIENCE={line.patience}"),
            f"-DSILENCE_MS={silence_ms}",
            *(f"-I{header}" for header in headers),
            *map(str, [TESTBENCH, *sorted(verilated.glob("*.cpp")), *runtime]),
            *("-o", str(program), "-latomic"),
        ],
        environment,
        folder / "compiler.log",
    )
    return program
