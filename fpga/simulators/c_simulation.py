"""The vendor's C++ of a block in C simulation: compiled here, run over any number of queries.

The blocks take and give what their references do (:mod:`entrain.fpga.reference`). A program is
compiled once for its settings and sizes and kept in the folder that the caller names; anchors, the
table of exponentials, keys and values come over streams, as in hardware.

``ap_int.h`` is the open one that hls4ml brings along. Beside it lies an ``hls_stream.h`` under
another licence; ours, in ``fpga/vitis/simulation``, is found before it.
"""

from __future__ import annotations

import importlib.util
import subprocess
import tempfile
from pathlib import Path

from entrain.deploy.arithmetic import IntArray
from entrain.deploy.errors import ToolError
from entrain.fpga.back_end.tools import tool_failed
from entrain.fpga.kept import kept, log_of
from entrain.fpga.reference import Integers, OscillatorBlock, Settled, SettlingCore, SoftmaxBlock
from entrain.fpga.simulators.vitis_instance import Instance
from entrain.fpga.simulators.vitis_vectors import Vectors, attention_vectors, settling_vectors

SOURCES = Path(__file__).parents[1] / "vitis"
COMPILER = "g++"
FLAGS = ("-std=c++14", "-O2", "-Wall", "-Wextra", "-Werror")
# HLS's pragmas; and ap_int's default constructor cuts to its width what nobody has set yet
QUIET = ("-Wno-unknown-pragmas", "-Wno-uninitialized", "-Wno-maybe-uninitialized")


def settled(core: SettlingCore, couplings: IntArray, folder: Path) -> Settled:
    """What :meth:`SettlingCore.settled` returns, by the C++.

    Args:
        core: anchors and settings.
        couplings: [queries, T], each from 0 to 2**15 - 1.
        folder: keeps the compiled program.

    Raises:
        OverflowError: a coupling out of range, or an anchor that is no unit vector.
        UsageError: settings that the C++ has no room for, or couplings of another shape.
        ToolError: no compiler or no ``ap_int.h``, or the program failed.
    """
    states, weights, flags, steps = run(settling_vectors(core, couplings), folder)
    return Settled(states, weights, flags[:, 0], steps[:, 0])


def contexts(
    block: OscillatorBlock | SoftmaxBlock,
    queries: IntArray,
    keys: IntArray,
    values: IntArray,
    folder: Path,
) -> Integers:
    """What the block's own ``contexts`` returns, by the C++: [queries, d_value].

    Args:
        block: settings, and anchors or the table of exponentials.
        queries: [queries, d_head], int8; of the separable coupling uint8.
        keys: [T, d_head], likewise.
        values: [T, d_value], int8.
        folder: keeps the compiled program.

    Raises:
        OverflowError: a query, key or value out of range.
        UsageError: settings that the C++ has no room for, or arrays of other shapes.
        ToolError: no compiler or no ``ap_int.h``, or the program failed.
    """
    (context,) = run(attention_vectors(block, queries, keys, values), folder)
    return context


def run(vectors: Vectors, folder: Path) -> list[Integers]:
    """The output streams of a block [queries, words of a query], in their order.

    Args:
        vectors: the block and its input streams.
        folder: keeps the compiled program.

    Raises:
        ToolError: no compiler or no ``ap_int.h``, or the program failed.
    """
    program = compiled(vectors.instance, folder)
    with tempfile.TemporaryDirectory(prefix="entrain-c-simulation-") as name:
        streams = Path(name)
        for file, words in vectors.inputs.items():
            words.tofile(streams / file)
        _checked([str(program), name], log_of(program.parent))
        return vectors.outputs_in(streams)


def ap_types() -> Path:
    """The folder with ``ap_int.h``.

    Raises:
        ToolError: hls4ml, which brings it along, is not installed, or has it no longer.
    """
    spec = importlib.util.find_spec("hls4ml")  # finds it without the seconds of importing it
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / "templates" / "vivado" / "ap_types"
        if (folder / "ap_int.h").is_file():
            return folder
    raise ToolError(
        "no ap_int.h on this machine, which the C++ of the blocks needs",
        where="hls4ml",
        remedy="pip install 'entrain-edge[fpga]'",
    )


def compiled(instance: Instance, folder: Path) -> Path:
    """The program of a block, compiled if the folder has it not yet.

    Beside the program lie ``instance.hpp`` and ``dependencies.d``, the list of all files that went
    into it.

    Raises:
        ToolError: no compiler or no ``ap_int.h``, or the compiler refuses the sources.
        UsageError: the folder cannot be written to.
    """
    options = [*FLAGS, *QUIET, "-isystem", str(ap_types())]
    sources = [path.read_bytes() for path in sorted(SOURCES.rglob("*.[ch]*"))]
    made_of: list[str | bytes] = [COMPILER, *options, instance.header, *sources]

    def make(made: Path, log: Path) -> None:
        (made / "instance.hpp").write_text(instance.header)
        command = [
            *(COMPILER, *options, "-MD", "-MF", str(made / "dependencies.d")),
            *(f"-I{place}" for place in (made, SOURCES / "simulation", SOURCES)),
            # in one go with the testbench: most of the time goes into ap_int.h
            *("-include", str(SOURCES / f"{instance.top}.cpp")),
            *(str(SOURCES / "testbench" / f"{instance.top}.cpp"), "-o", str(made / instance.top)),
        ]
        _checked(command, log)

    return kept(folder, instance.top, made_of, make) / instance.top


def _checked(command: list[str], log: Path) -> None:
    """Run a program to its end; what it prints is added to the log.

    Raises:
        ToolError: there is none, or it failed.
    """
    tool = Path(command[0]).name
    try:
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise ToolError(
            f"{tool} is not installed", remedy="apt-get install build-essential"
        ) from error
    with log.open("a") as printed:
        printed.write(ended.stderr)
    if ended.returncode != 0:
        lines = ended.stderr.splitlines()
        errors = [line for line in lines if "error:" in line]
        said = next(iter(errors or lines), f"exit status {ended.returncode}")
        raise tool_failed(tool, said, log)
