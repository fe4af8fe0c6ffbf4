"""A run's attention block as a program of this machine, made once and kept in the run's folder."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from entrain.deploy.coprocessor import Coprocessor, coprocessor, hardware
from entrain.deploy.errors import concerning
from entrain.deploy.lowering.network import read_network
from entrain.deploy.pipeline import Progress
from entrain.deploy.runs import Run
from entrain.fpga.bridge.design import bridged
from entrain.fpga.kept import kept
from entrain.fpga.simulators.serial import SIMULATED, TESTBENCH, compile_board
from entrain.fpga.simulators.verilator import Module

FOLDER = "fpga"  # in a run's


@dataclass(frozen=True, eq=False)
class Block:
    """A run's attention as a block: what it computes, and its Verilog."""

    coprocessor: Coprocessor
    module: Module
    folder: Path


def block_of(run: Run) -> Block:
    """The block of a run's attention, its Verilog in the run's folder.

    Raises:
        ModelError: the run holds no usable ONNX file.
        UnsupportedOperator: no block computes its attention.
        ToolError: XLS is not installed.
    """
    with concerning(run.name):
        chosen = coprocessor(read_network(run.onnx, run.name))
    folder = run.folder / FOLDER / chosen.layer.name
    return Block(chosen, hardware(chosen, folder), folder)


def simulated_board(run: Run, block: Block, progress: Progress) -> Path:
    """The program that simulates the block behind its serial line.

    Raises:
        ToolError: Verilator or a compiler is not installed, or refuses the sources.
    """
    design = bridged(
        block.module,
        block.coprocessor.shape,
        SIMULATED,
        block.folder,
        table=block.coprocessor.table,
    )
    texts = [repr(SIMULATED), *(path.read_text() for path in (TESTBENCH, *design.sources))]

    def make(made: Path, _log: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="entrain-") as work:
            shutil.copy2(compile_board(design, SIMULATED, Path(work)), made / design.top)

    with progress.stage(run, "compile the simulated block", 1) as step:
        place = kept(run.folder / FOLDER, "board", texts, make)
        step("")
    return place / design.top
