"""A network whose attention runs in an FPGA's block while the rest runs on this machine.

Layers before the attention, the block's netlist, layers behind it; beside it the same network as a
whole, in the C that a microcontroller would run. The block is driven through its streams, many
sequences at once, not through the serial line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic import quantize
from entrain.deploy.comparison import chosen
from entrain.deploy.coprocessor import Coprocessor, Heads, several
from entrain.deploy.errors import UsageError
from entrain.deploy.lowering.artifact import read_lowered
from entrain.deploy.lowering.graph import Array, LoweredGraph
from entrain.deploy.lowering.host import HostModel
from entrain.deploy.lowering.interpreter import run_layer
from entrain.deploy.lowering.network import read_network
from entrain.deploy.lowering.tensors import Given, by_name
from entrain.deploy.measure import Classes, classes_of
from entrain.deploy.pipeline import LoadData, Progress, check_labels, complete, trained_network
from entrain.deploy.recipe import task_of
from entrain.deploy.runs import Run
from entrain.deploy.simulated_board import Block, block_of
from entrain.fpga.built import simulator_of
from entrain.fpga.generation.attention import contexts_in
from entrain.fpga.simulators.verilator import Simulator

AT_ONCE = 25  # clips whose values are kept in memory


@dataclass(frozen=True)
class Split:
    """How a split network answered, beside the same network as a whole.

    Attributes:
        run: its name.
        clips: samples asked.
        agreeing: of them, those with the same top-1.
        identical: those whose every output is the same integer.
        correct_split: those that the split network classified right.
        correct_whole: those that the whole one did.
        queries: that the block answered.
        cycles: that it took for them (counted).
    """

    run: str
    clips: int
    agreeing: int
    identical: int
    correct_split: int
    correct_whole: int
    queries: int
    cycles: int

    @property
    def accuracy_split(self) -> float:
        """Of the split network, from 0 to 1."""
        return self.correct_split / self.clips

    @property
    def accuracy_whole(self) -> float:
        """Of the whole one, from 0 to 1."""
        return self.correct_whole / self.clips

    @property
    def cycles_per_query(self) -> float:
        """Of the block's clock (counted), loading keys and values included."""
        return self.cycles / self.queries


@dataclass(frozen=True, eq=False)
class SplitOutputs:
    """Integers [N, classes] of the split network, and the block's cycles."""

    outputs: Array
    cycles: int


def split_run(run: Run, load: LoadData, clips: int, progress: Progress) -> Split:
    """So many samples of a run's test part through the split and through the whole network.

    Args:
        run: trained; what is due of its stages is done first.
        load: gives the data.
        clips: how many, drawn from all alike; all, if there are no more.
        progress: is told.

    Raises:
        UsageError: no clips are asked for, or the run has no data of its own.
        UnsupportedOperator: no block computes its attention.
        ToolError: XLS, Verilator or a compiler is missing.
        Mismatch: the lowered network differs between its forms.
    """
    if clips < 1:
        raise UsageError(f"{clips} clips", where="--clips", remedy="ask for one at least")
    task = task_of(run)
    complete(run, load, progress)
    checkpoint, data = trained_network(run), load()
    check_labels(run, checkpoint, data)
    part = chosen(data.test, clips)
    with progress.stage(run, "make the block", 1) as step:
        block = block_of(run)
        simulator = simulator_of(block.module, block.folder)
        step("")
    features = task.inputs(part, checkpoint).numpy()
    return compare_split(run, block, simulator, features, task.truth(part), progress)


def compare_split(
    run: Run,
    block: Block,
    simulator: Simulator,
    features: NDArray[np.float32],
    truth: Classes,
    progress: Progress,
) -> Split:
    """The split network beside the whole one, on real features [N, ...] of true classes [N]."""
    model = read_lowered(run.lowered)
    graph = read_network(run.onnx, run.name)
    source = graph.input
    inputs = quantize(features, source.scale, source.zero_point, source.dtype)
    host = HostModel(model, run.lowered)
    with progress.stage(run, "the network as a whole", len(inputs)) as step:
        whole = np.stack([_stepping(step, host.run(one).reshape(-1)) for one in inputs])
    with progress.stage(run, "the network with its attention in the block", len(inputs)) as step:
        split = split_outputs(graph, block.coprocessor, simulator, inputs, lambda: step(""))
    return Split(
        run=run.name,
        clips=len(inputs),
        agreeing=int((classes_of(split.outputs) == classes_of(whole)).sum()),
        identical=int((split.outputs == whole).all(axis=1).sum()),
        correct_split=int((classes_of(split.outputs) == truth).sum()),
        correct_whole=int((classes_of(whole) == truth).sum()),
        queries=len(inputs) * len(block.coprocessor.heads) * block.coprocessor.shape.queries,
        cycles=split.cycles,
    )


def _stepping(step: Callable[[str], None], output: Array) -> Array:
    step("")
    return output


def split_outputs(
    graph: LoweredGraph,
    coprocessor: Coprocessor,
    simulator: Simulator,
    inputs: Sequence[Given] | Array,
    on_sample: Callable[[], None],
) -> SplitOutputs:
    """The network with its attention in the simulated block, an inference after the other.

    Args:
        graph: the lowered network.
        coprocessor: the block of its attention.
        simulator: of the block.
        inputs: of each inference, integers of the only input, or of all by name.
        on_sample: called after each sample.

    Raises:
        ToolError: the block does not answer.
    """
    place = next(i for i, each in enumerate(graph.layers) if each.name == coprocessor.layer.name)
    outputs, cycles = [], 0
    for start in range(0, len(inputs), AT_ONCE):
        batch = [by_name(graph.inputs, one) for one in inputs[start : start + AT_ONCE]]
        for values in batch:
            _run_layers(graph, slice(None, place), values)
        answers, took = _in_block(coprocessor, simulator, several(coprocessor, batch))
        cycles += took
        for values, answer in zip(batch, answers, strict=True):
            values[coprocessor.layer.output.name] = coprocessor.written(answer)
            _run_layers(graph, slice(place + 1, None), values)
            outputs.append(values[graph.output.name].reshape(-1))
            on_sample()
    return SplitOutputs(np.stack(outputs), cycles)


def _run_layers(graph: LoweredGraph, part: slice, values: dict[str, Array]) -> None:
    """Add what these layers compute to the values."""
    for layer in graph.layers[part]:
        values[layer.output.name] = run_layer(layer, values)


def _in_block(
    coprocessor: Coprocessor, simulator: Simulator, given: Heads
) -> tuple[NDArray[np.int64], int]:
    """Contexts [inferences, heads, queries, d_value], and the cycles they took."""
    contexts, cycles = [], 0
    for head, block in enumerate(coprocessor.heads):
        rows = (given.queries[:, head], given.keys[:, head], given.values[:, head])
        answered, took = contexts_in(simulator, block, *rows)
        contexts.append(answered)
        cycles += took
    return np.stack(contexts, axis=1), cycles
