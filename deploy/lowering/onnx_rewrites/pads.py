"""Pad: a Concat with constants, or a Gather that looks at places near the edges again."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.onnx_rewrites.editing import (
    Namer,
    add_constant,
    attributes,
    constants,
    describe_node,
    replace_nodes,
    shapes,
)

Sides = list[tuple[int, int]]
REWRITTEN = frozenset({"Pad"})


def pad_by_joining(model: Any) -> None:
    """Replace every Pad; its sides and its value must be constants."""
    found = [node for node in model.graph.node if node.op_type == "Pad"]
    if not found:
        return
    known, arrays = shapes(model), constants(model)
    replacements = []
    for node in found:
        shape = known.get(node.input[0])
        sides = None if shape is None else _sides(node, len(shape), arrays)
        value = _value(node, arrays)
        if shape is None or sides is None or value is None:
            raise UnsupportedOperator(
                f"node {describe_node(node)} pads something whose shape is not static, or by "
                "numbers that are computed",
                remedy="export with static shapes",
            )
        rewriting = _Rewriting(model, node, value)
        replacements.append((node, rewriting.steps(list(shape), sides)))
    replace_nodes(model, replacements)


def _sides(node: Any, rank: int, arrays: dict[str, Array]) -> Sides | None:
    """How many elements come before and behind each axis; negative ones are taken off."""
    chosen = node.input[3] if len(node.input) > 3 else ""
    given, axes = arrays.get(node.input[1]), arrays.get(chosen, None if chosen else np.arange(rank))
    if given is None or axes is None:
        return None
    sides = np.zeros((rank, 2), np.int64)
    sides[axes.ravel() % rank] = given.reshape(2, -1).T
    return [(int(before), int(after)) for before, after in sides]


def _value(node: Any, arrays: dict[str, Array]) -> Array | None:
    """The number around the tensor."""
    name = node.input[2] if len(node.input) > 2 else ""
    return arrays.get(name) if name else np.zeros((), np.float32)


class _Rewriting:
    """One Pad as nodes: first what is taken off, then one node for each axis that grows."""

    def __init__(self, model: Any, node: Any, value: Array) -> None:
        self.model = model
        self.node = node
        self.value = value
        self.mode = attributes(node).get("mode", b"constant").decode()
        self.names = Namer(model)
        self.made: list[Any] = []
        self.tensor = node.input[0]

    def steps(self, extents: list[int], sides: Sides) -> list[Any]:
        """The nodes in order; the last one writes what the Pad wrote."""
        if any(side < 0 for pair in sides for side in pair):
            starts = np.asarray([max(-before, 0) for before, _ in sides])
            extents = [n + min(b, 0) + min(a, 0) for n, (b, a) in zip(extents, sides, strict=True)]
            self._add("Slice", [self.tensor, *map(self._constant, (starts, starts + extents))])
        for axis, pair in enumerate(sides):
            before, after = (max(side, 0) for side in pair)
            if before or after:
                self._grow(extents, axis, before, after)
                extents[axis] += before + after
        if not self.made:
            self._add("Identity", [self.tensor])
        self.made[-1].output[0] = self.node.output[0]
        return self.made

    def _grow(self, extents: list[int], axis: int, before: int, after: int) -> None:
        if self.mode == "constant":
            ends = [
                self._constant(np.full((*extents[:axis], n, *extents[axis + 1 :]), self.value))
                if n
                else ""
                for n in (before, after)
            ]
            parts = [name for name in (ends[0], self.tensor, ends[1]) if name]
            self._add("Concat", parts, axis=axis)
            return
        try:
            places = np.pad(np.arange(extents[axis]), (before, after), self.mode)
        except ValueError as error:
            raise UnsupportedOperator(
                f"node {describe_node(self.node)} pads in mode {self.mode}: {error}",
                remedy="correct the model",
            ) from error
        self._add("Gather", [self.tensor, self._constant(places)], axis=axis)

    def _constant(self, array: Array) -> str:
        return add_constant(self.model, array, self.names(f"{self.node.output[0]}_constant"))

    def _add(self, operator: str, inputs: list[str], **given: Any) -> None:
        from onnx import helper

        self.tensor = self.names(f"{self.node.output[0]}_part")
        self.made.append(
            helper.make_node(operator, inputs, [self.tensor], name=self.node.name, **given)
        )
