"""Where each value, and the scratch of each layer, lies in the arena: offsets by live ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from entrain.deploy.errors import DoesNotFit
from entrain.deploy.lowering.graph import LoweredGraph, Value
from entrain.deploy.lowering.placement import (
    Block,
    Offsets,
    height,
    most_alive,
    place,
    place_quickly,
)

ALIGNMENT = 8
LARGEST_OBJECT = 2**31 - 1  # bytes: what a C compiler for 32-bit addresses takes, and indexes

_NO_SCRATCH: Mapping[str, int] = MappingProxyType({})
_NEVER: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True)
class Placement:
    """Bytes of the arena, and the layers (first to last, inclusive) while they are in use.

    ``name`` is the value's; for scratch it is the layer's.
    """

    name: str
    size: int
    offset: int
    first: int
    last: int


@dataclass(frozen=True)
class MemoryPlan:
    """The arena of a network.

    Attributes:
        values: all values but the model's inputs and outputs.
        scratch: of the layers that need some.
        overwritten: by the layer's name, the input whose bytes its output takes.
        arena_bytes: bytes of the arena, a multiple of the alignment.
        bound: what no plan can undercut: the most bytes in use at the same time, every layer that
            may overwrite an input doing so.
    """

    values: tuple[Placement, ...]
    scratch: tuple[Placement, ...]
    overwritten: Mapping[str, str]
    arena_bytes: int
    bound: int

    def offset(self, name: str) -> int:
        """Offset of a value by name; KeyError for the model's inputs and outputs."""
        return {placement.name: placement.offset for placement in self.values}[name]

    def scratch_offset(self, layer: str) -> int:
        """Offset of a layer's scratch by the layer's name; KeyError if it needs none."""
        return {placement.name: placement.offset for placement in self.scratch}[layer]


def aligned(size: int) -> int:
    """The size rounded up to the arena's alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def value_bytes(value: Value) -> int:
    """Bytes of a value, however wide its elements are."""
    return value.size * np.dtype(value.dtype).itemsize


def plan_memory(
    graph: LoweredGraph,
    scratch: Mapping[str, int] = _NO_SCRATCH,
    in_place: Mapping[str, tuple[str, ...]] = _NEVER,
) -> MemoryPlan:
    """Offsets for all values but the model's inputs and outputs, which are the caller's buffers.

    Args:
        graph: the network.
        scratch: bytes that a layer, by name, needs while it runs.
        in_place: by the layer's name, values whose bytes its output may take. That is done where
            it makes the arena smaller and is legal: the value is not read later, is not the
            model's input, and has at least as many bytes as the output.

    Raises:
        DoesNotFit: the arena, or a value, is larger than any array of a 32-bit core.
    """
    for value in (*graph.inputs, *(layer.output for layer in graph.layers)):
        _check_size(value_bytes(value), f"tensor {value.onnx_output}")
    values = _values(graph)
    working = tuple(
        Placement(layer.name, scratch[layer.name], 0, step, step)
        for step, layer in enumerate(graph.layers)
        if scratch.get(layer.name, 0) > 0
    )
    choices = _legal(graph, {value.name: value for value in values}, in_place)
    everywhere = {output: inputs[0] for output, inputs in choices.items()}
    bound = most_alive(_blocks(_groups(values, everywhere), working))
    _check_size(bound, f"the arena of {graph.name}")
    layout = _smallest(values, working, choices)
    _check_size(layout.arena_bytes, f"the arena of {graph.name}")
    return MemoryPlan(
        layout.values,
        layout.scratch,
        dict(layout.overwritten),
        layout.arena_bytes,
        bound,
    )


def _check_size(size: int, where: str) -> None:
    if aligned(size) > LARGEST_OBJECT:
        raise DoesNotFit(
            f"{size} bytes, and no array of a 32-bit core has more than {LARGEST_OBJECT}",
            where=where,
            remedy="make the model smaller",
        )


def _values(graph: LoweredGraph) -> tuple[Placement, ...]:
    """What lies in the arena, in the order of the layers; offsets are still 0."""
    outputs = {value.name for value in graph.outputs}
    last_use: dict[str, int] = {}
    for step, layer in enumerate(graph.layers):
        last_use.update({value.name: step for value in layer.inputs})
    return tuple(
        Placement(name, value_bytes(layer.output), 0, step, last_use.get(name, step))
        for step, layer in enumerate(graph.layers)
        if (name := layer.output.name) not in outputs
    )


def _legal(
    graph: LoweredGraph, values: Mapping[str, Placement], in_place: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """For each output the inputs that may give it their bytes, of those that the caller offers."""
    legal: dict[str, tuple[str, ...]] = {}
    for step, layer in enumerate(graph.layers):
        output = values.get(layer.output.name)
        read = {value.name for value in layer.inputs}
        offered = (values[name] for name in in_place.get(layer.name, ()) if name in values)
        inputs = tuple(
            each.name
            for each in offered
            if each.name in read and each.last == step and output and each.size >= output.size
        )
        if inputs:
            legal[layer.output.name] = inputs
    return legal


@dataclass(frozen=True)
class _Layout:
    """A plan in the making; ``overwritten`` gives for an output the input whose bytes it takes."""

    values: tuple[Placement, ...]
    scratch: tuple[Placement, ...]
    overwritten: Mapping[str, str]
    arena_bytes: int

    @property
    def cost(self) -> tuple[int, int]:
        """The arena; and a layer that may not assume its pointers apart is a slower one."""
        return self.arena_bytes, len(self.overwritten)


def _smallest(
    values: tuple[Placement, ...],
    working: tuple[Placement, ...],
    choices: Mapping[str, tuple[str, ...]],
) -> _Layout:
    """Overwrite nowhere or wherever it is legal, then change one choice after the other."""
    everywhere = {output: inputs[0] for output, inputs in choices.items()}
    starts = [_laid_out(values, working, chosen, place) for chosen in ({}, everywhere)]
    best = min(starts, key=lambda each: each.cost)
    for output, inputs in choices.items():
        for overwritten in (None, *inputs):
            others = {key: name for key, name in best.overwritten.items() if key != output}
            chosen = others if overwritten is None else {**others, output: overwritten}
            if most_alive(_blocks(_groups(values, chosen), working)) <= best.arena_bytes:
                changed = _laid_out(values, working, chosen, place_quickly)
                best = min(best, changed, key=lambda each: each.cost)
    return best


def _laid_out(
    values: tuple[Placement, ...],
    working: tuple[Placement, ...],
    overwritten: Mapping[str, str],
    means: Callable[[Sequence[Block]], Offsets],
) -> _Layout:
    groups = _groups(values, overwritten)
    blocks = _blocks(groups, working)
    offsets = means(blocks)
    at = {
        value.name: offset
        for group, offset in zip(groups, offsets, strict=False)
        for value in group
    }
    return _Layout(
        tuple(replace(value, offset=at[value.name]) for value in values),
        tuple(
            replace(each, offset=offset)
            for each, offset in zip(working, offsets[len(groups) :], strict=True)
        ),
        overwritten,
        height(blocks, offsets),
    )


def _groups(values: tuple[Placement, ...], overwritten: Mapping[str, str]) -> list[list[Placement]]:
    """Values that take each other's bytes, each group in the order of its life."""
    groups: dict[str, list[Placement]] = {}
    for value in values:
        group = groups[overwritten[value.name]] if value.name in overwritten else []
        group.append(value)
        groups[value.name] = group
    return [group for name, group in groups.items() if group[0].name == name]


def _blocks(groups: list[list[Placement]], working: tuple[Placement, ...]) -> list[Block]:
    """A block for each group, then one for each scratch."""
    return [_block(group) for group in (*groups, *([each] for each in working))]


def _block(group: list[Placement]) -> Block:
    """Bytes that one value after the other takes, none of them larger than the one before."""
    given_back = tuple(
        (before.last + 1, aligned(after.size))
        for before, after in pairwise(group)
        if aligned(after.size) < aligned(before.size)
    )
    return Block(aligned(group[0].size), group[0].first, group[-1].last, given_back)
