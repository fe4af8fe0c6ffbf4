"""Generated Verilog and its simulators, made once and kept by the content of their sources."""

from __future__ import annotations

from pathlib import Path

from entrain.fpga.generation import verilog
from entrain.fpga.generation.primitives import PRIMITIVES
from entrain.fpga.generation.verilog import COMPACT, Block, Pace, generate
from entrain.fpga.kept import kept
from entrain.fpga.simulators import verilator
from entrain.fpga.simulators.just_in_time import SOURCES
from entrain.fpga.simulators.verilator import Channel, Module, Simulator, compile_module


def kept_module(block: Block, folder: Path, pace: Pace = COMPACT) -> Module:
    """The block's Verilog as ``entrain.fpga.generation.verilog`` makes it, kept in ``folder``.

    Raises:
        ToolError: XLS is missing, or refuses the sources.
        UsageError: the folder cannot be written.
    """
    generator = [Path(verilog.__file__), *sorted(SOURCES.glob("*.x"))]
    made_of: list[str | bytes] = [repr((block, pace)), *(path.read_bytes() for path in generator)]
    place = kept(folder, block.name, made_of, lambda made, _log: _generate(block, made, pace))
    own = sorted(path for path in place.iterdir() if path.suffix in {".v", ".sv"})
    return Module(
        block.name,
        (*own, *PRIMITIVES),
        tuple(Channel(port.name, port.bits) for port in block.inputs),
        tuple(Channel(port.name, port.bits) for port in block.outputs),
    )


def _generate(block: Block, made: Path, pace: Pace) -> None:
    generate(block, made, pace)


def simulator_of(module: Module, folder: Path) -> Simulator:
    """The module's simulator, kept in ``folder``.

    Raises:
        ToolError: Verilator is missing, or refused the sources.
        UsageError: the folder cannot be written.
    """
    sources = [*module.sources, verilator.TESTBENCH, Path(verilator.__file__)]
    channels = repr((module.top, module.inputs, module.outputs))
    made_of: list[str | bytes] = [channels, *(path.read_bytes() for path in sources)]
    place = kept(folder, f"simulator-{module.top}", made_of, lambda made, _: _compile(module, made))
    return Simulator(module, place / f"{module.top}.so")


def _compile(module: Module, made: Path) -> None:
    compile_module(module, made)
