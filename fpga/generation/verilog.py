"""From DSLX to Verilog: XLS makes the block's module, a wrapper gives it memories and plain names.

Nothing that comes out is ever edited: another shape or another setting is another generation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from entrain.deploy.errors import ToolError
from entrain.deploy.files import write_whole
from entrain.fpga.generation.primitives import PRIMITIVES
from entrain.fpga.simulators.just_in_time import SOURCES, xls_module
from entrain.fpga.simulators.verilator import (
    STREAM,
    Channel,
    Module,
    connections,
    port_declarations,
)


@dataclass(frozen=True)
class Pace:
    """What XLS puts between a block's stages, and into them.

    Attributes:
        streams: between two stages, as its intermediate representation says it.
        pipeline: each stage's own, as arguments of its code generator.
    """

    streams: str
    pipeline: tuple[tuple[str, int], ...]


_DIRECT = "fifo_depth=0, bypass=true, register_push_outputs=false"
# Where cells are dear: a stage has the registers that its memories ask for, however long a cycle.
COMPACT = Pace(_DIRECT, (("clock_period_ps", 100_000),))
# Where they are not: registers in each stage and between any two, so that the clock runs faster.
# Whether a queue has room is a register too, or the last stage's stall would reach all before it.
QUICK = Pace("fifo_depth=2, bypass=false, register_push_outputs=true", (("pipeline_stages", 5),))
# where the sources ask for a register, one cycle after the other: nothing goes past it
_PASSED, _NOT_PASSED = "fifo_depth=1, bypass=true", "fifo_depth=1, bypass=false"


@dataclass(frozen=True)
class Memory:
    """A memory beside a block, with one port to read and one to write.

    Attributes:
        name: of its channels ``name_read``, ``name_word`` and ``name_write``.
        depth: words.
        address_bits: of an address.
        word: the word's type in DSLX.
        bits: of a word.
    """

    name: str
    depth: int
    address_bits: int
    word: str
    bits: int

    def parameters(self) -> str:
        """The channels, as parameters of a DSLX proc."""
        address = f"u{self.address_bits}"
        return (
            f"{self.name}_read: chan<{address}> out, {self.name}_word: chan<{self.word}> in, "
            f"{self.name}_write: chan<({address}, {self.word})> out"
        )

    def arguments(self) -> str:
        """The channels, as arguments."""
        return ", ".join(f"{self.name}_{end}" for end in ("read", "word", "write"))

    def widths(self) -> dict[str, int]:
        """The bits of each channel."""
        write = self.address_bits + self.bits
        return {"read": self.address_bits, "word": self.bits, "write": write}


@dataclass(frozen=True)
class Port:
    """A stream of a block: its name, its type in DSLX and its bits."""

    name: str
    kind: str
    bits: int


@dataclass(frozen=True)
class Block:
    """A proc of the sources with its parameters.

    Attributes:
        name: of the module.
        module: the DSLX file, without its ending.
        parameters: of ``module::block``, in order.
        inputs: streams in, as ``module::block`` takes them.
        outputs: streams out, behind them.
        memories: behind those.
    """

    name: str
    module: str
    parameters: tuple[str, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    memories: tuple[Memory, ...]

    def source(self) -> str:
        """A DSLX module of which the proc ``top`` is this block."""
        ports = [
            *(f"{port.name}: chan<{port.kind}> in" for port in self.inputs),
            *(f"{port.name}: chan<{port.kind}> out" for port in self.outputs),
        ]
        streams = [port.name for port in (*self.inputs, *self.outputs)]
        parameters = ", ".join([*ports, *(memory.parameters() for memory in self.memories)])
        arguments = ", ".join([*streams, *(memory.arguments() for memory in self.memories)])
        return (
            f"import {self.module};\n\n"
            "pub proc top {\n"
            f"  config({parameters}) {{\n"
            f"    spawn {self.module}::block<{', '.join(self.parameters)}>({arguments});\n"
            "  }\n"
            "  init { () }\n"
            "  next(_: ()) { () }\n"
            "}\n"
        )


def generate(block: Block, folder: Path, pace: Pace = COMPACT) -> Module:
    """The block's Verilog, its wrapper and its memories, as a module of plain names.

    Raises:
        ToolError: XLS is missing, or refuses the sources.
    """
    folder.mkdir(parents=True, exist_ok=True)
    inner, wrapper = folder / f"{block.name}_stages.sv", folder / f"{block.name}.v"
    write_whole(folder / f"{block.name}.x", block.source())
    write_whole(inner, _stages(block, pace))
    write_whole(wrapper, _wrapper(block))
    return Module(
        block.name,
        (wrapper, inner, *PRIMITIVES),
        _channels(block.inputs),
        _channels(block.outputs),
    )


def _stages(block: Block, pace: Pace) -> str:
    xls = xls_module()
    try:
        with _quiet():
            ir = xls.convert_dslx_to_ir(
                block.source(), "top.x", "top", additional_search_paths=[str(SOURCES)]
            )
            ir = ir.replace(_PASSED, _NOT_PASSED).replace(_DIRECT, pace.streams)
            optimised = xls.optimize_ir(ir, "__top__top_0_next")
            made = xls.Package.parse_ir(optimised).schedule_and_codegen(
                generator="pipeline",
                top="__top__top_0_next",
                module_name=f"{block.name}_stages",
                use_system_verilog=False,
                reset="rst",
                multi_proc=True,
                streaming_channel_data_suffix="_data",
                streaming_channel_valid_suffix="_valid",
                streaming_channel_ready_suffix="_ready",
                io_constraints=_latencies(block),
                # its defaults are not those of XLS itself
                worst_case_throughput=1,
                gate_recvs=True,
                array_index_bounds_checking=True,
                delay_model="unit",
                **dict(pace.pipeline),
                flop_inputs=False,
                flop_outputs=False,
            )
            text: str = made.get_verilog_text()
    except RuntimeError as error:
        raise ToolError(f"XLS refuses {block.module}.x: {error}") from error
    return text


def _latencies(block: Block) -> list[str]:
    """A word is there one cycle after its address, and is taken then."""
    return [f"top__{m.name}_read:send:top__{m.name}_word:recv:1:1" for m in block.memories]


def _wrapper(block: Block) -> str:
    """A module with streams of plain names around the stages and their memories."""
    inputs, outputs = _channels(block.inputs), _channels(block.outputs)
    held = {f"{m.name}_{end}": bits for m in block.memories for end, bits in m.widths().items()}
    streams = [*(channel.name for channel in (*inputs, *outputs)), *held]
    inner = [".clk(clk)", ".rst(rst)", *connections(streams, "top__")]
    return "\n".join(
        [
            f"// {block.module} with {', '.join(block.parameters)}; its streams, and its memories.",
            f"module {block.name}(",
            "  " + ",\n  ".join(port_declarations(inputs, outputs)),
            ");",
            *(f"  wire [{bits - 1}:0] {name}_data;" for name, bits in held.items()),
            *(f"  wire {name}_valid, {name}_ready;" for name in held),
            f"  {block.name}_stages stages(",
            "    " + ",\n    ".join(inner),
            "  );",
            *map(_memory, block.memories),
            "endmodule",
            "",
        ]
    )


def _channels(ports: tuple[Port, ...]) -> tuple[Channel, ...]:
    return tuple(Channel(port.name, port.bits) for port in ports)


def _memory(memory: Memory) -> str:
    streams = ", ".join(
        f".{end}_{signal}({memory.name}_{end}_{signal})"
        for end in memory.widths()
        for signal in STREAM
    )
    return (
        f"  entrain_memory #(.WIDTH({memory.bits}), .DEPTH({memory.depth}), "
        f".ADDRESS_BITS({memory.address_bits})) {memory.name}(\n"
        f"    .clk(clk), .rst(rst), {streams}\n"
        "  );"
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """XLS warns on the process's own standard error that plain Verilog has no assertions."""
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
