"""A design with serial pins as a program of this machine: Verilator, and a pseudo-terminal."""

from __future__ import annotations

from pathlib import Path

from entrain.fpga.back_end.synthesis import Design
from entrain.fpga.bridge.design import PATIENCE_SECONDS, Line
from entrain.fpga.generation.primitives import FOLDER
from entrain.fpga.simulators.verilator import compile_verilated

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
    program = folder / design.top
    settings = [f"-DCLOCKS_PER_BIT={line.clocks_per_bit}", f"-DPATIENCE={line.patience}"]
    silence = f"-DSILENCE_MS={silence_ms}"
    compile_verilated(design.top, design.sources, TESTBENCH, program, [*settings, silence])
    return program
