"""Generated Verilog and its simulators, made once and kept by the content of their sources."""

from __future__ import annotations

from pathlib import Path

from entrain.fpga import simulation, verilog
from entrain.fpga.just_in_time import SOURCES
from entrain.fpga.kept import kept
from entrain.fpga.primitives import PRIMITIVES
from entrain.fpga.simulation import Channel, Module, Simulator, compile_module
from entrain.fpga.verilog import COMPACT, Block, Pace, generate


def kept_module(block: Block, folder: Path, pace: Pace = COMPACT) -> Module:
    """The block's Verilog as :func:`~entrain.fpga.verilog.generate` makes it, kept in ``folder``.

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
    sources = [*module.sources, simulation.TESTBENCH, Path(simulation.__file__)]
    channels = repr((module.top, module.inputs, module.outputs))
    made_of: list[str | bytes] = [channels, *(path.read_bytes() for path in sources)]
    place = kept(folder, f"simulator-{module.top}", made_of, lambda made, _: _compile(module, made))
    return Simulator(module, place / f"{module.top}.so")


def _compile(module: Module, made: Path) -> None:
    compile_module(module, made)
