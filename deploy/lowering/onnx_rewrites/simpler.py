"""Operators that are others in disguise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
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
    element_types,
    name_of,
    replace_nodes,
    shapes,
)


class _Surroundings:
    """What a rewriting may need to know of the model, and new constants for it."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.arrays = constants(model)
        self.shapes = shapes(model)
        self.types = element_types(model)
        self.names = Namer(model)

    def constant(self, array: Any, dtype: str, stem: str) -> str:
        """The name of a new constant."""
        return add_constant(self.model, np.asarray(array, dtype), self.names(stem))

    def shape(self, node: Any) -> tuple[int, ...]:
        """The static shape of a node's first input."""
        if node.input[0] not in self.shapes:
            raise UnsupportedOperator(
                f"the shape of {node.input[0]}, which node {describe_node(node)} reads, is not "
                "static",
                remedy="export with static shapes; only the batch may be dynamic",
            )
        return self.shapes[node.input[0]]


def simplify(model: Any) -> None:
    """Replace each operator of ``_SIMPLER``."""
    found = [node for node in model.graph.node if node.op_type in _SIMPLER]
    if found:
        around = _Surroundings(model)
        replace_nodes(model, [(node, _SIMPLER[node.op_type](node, around)) for node in found])


def _node(operator: str, inputs: list[str], output: str, name: str, **given: Any) -> Any:
    from onnx import helper

    return helper.make_node(operator, inputs, [output], name=name, **given)


def _split(node: Any, around: _Surroundings) -> list[Any]:
    """A Slice for each part."""
    given, shape = attributes(node), around.shape(node)
    axis = given.get("axis", 0) % len(shape)
    sizes = given.get("split")
    if len(node.input) > 1 and node.input[1]:
        sizes = around.arrays.get(node.input[1])
        if sizes is None:
            raise UnsupportedOperator(
                f"node {describe_node(node)} splits at places that are computed",
                remedy="export with static shapes",
            )
    if sizes is None:
        count = len(node.output)
        each = -(-shape[axis] // count)
        sizes = [max(0, min(each, shape[axis] - k * each)) for k in range(count)]
    ends = list(accumulate(int(size) for size in sizes))
    axes = around.constant([axis], "int64", "axis")
    parts = []
    for k, (output, end) in enumerate(zip(node.output, ends, strict=True)):
        if output:
            start = around.constant([end - int(sizes[k])], "int64", f"{output}_start")
            stop = around.constant([end], "int64", f"{output}_end")
            inputs = [node.input[0], start, stop, axes]
            parts.append(_node("Slice", inputs, output, f"{name_of(node)}_{k}"))
    return parts


def _dropout(node: Any, around: _Surroundings) -> list[Any]:
    """Nothing, once trained."""
    mask = len(node.output) > 1 and bool(node.output[1])
    switch = node.input[2] if len(node.input) > 2 else ""
    training = bool(switch) and bool(around.arrays.get(switch, np.asarray(True)).any())
    if mask or training:
        raise UnsupportedOperator(
            f"node {describe_node(node)} is a Dropout that drops, or shows what it would drop",
            remedy="export the model for inference (model.eval())",
        )
    return [_node("Identity", [node.input[0]], node.output[0], node.name)]


def _cast(node: Any, around: _Surroundings) -> list[Any]:
    """Nothing, to the type that a tensor has."""
    if around.types.get(node.input[0]) != attributes(node)["to"]:
        return [node]
    return [_node("Identity", [node.input[0]], node.output[0], node.name)]


def _batch_normalization(node: Any, around: _Surroundings) -> list[Any]:
    """A factor and an offset a channel, from the running statistics."""
    parameters = [around.arrays.get(name) for name in node.input[1:5]]
    if any(array is None for array in parameters) or attributes(node).get("training_mode"):
        raise UnsupportedOperator(
            f"node {describe_node(node)} normalizes a batch by its own statistics",
            remedy="export the model for inference (model.eval())",
        )
    gamma, beta, mean, variance = (np.asarray(array, np.float64) for array in parameters)
    factor = gamma / np.sqrt(variance + attributes(node).get("epsilon", 1e-5))
    shape = (-1, *[1] * (len(around.shape(node)) - 2))
    output = node.output[0]
    scaled = around.names(f"{output}_scaled")
    factors = around.constant(factor.reshape(shape), "float32", f"{output}_factor")
    offsets = around.constant((beta - mean * factor).reshape(shape), "float32", f"{output}_offset")
    return [
        _node("Mul", [node.input[0], factors], scaled, node.name),
        _node("Add", [scaled, offsets], output, node.name),
    ]


def _global_max_pool(node: Any, around: _Surroundings) -> list[Any]:
    """A MaxPool whose window is the image."""
    shape = around.shape(node)
    return [_node("MaxPool", [node.input[0]], node.output[0], node.name, kernel_shape=shape[2:])]


def _sum(node: Any, around: _Surroundings) -> list[Any]:
    """One Add after the other."""
    if len(node.input) == 1:
        return [_node("Identity", [node.input[0]], node.output[0], node.name)]
    total, parts = node.input[0], []
    for name in node.input[1:-1]:
        parts.append(_node("Add", [total, name], around.names(f"{node.output[0]}_part"), node.name))
        total = parts[-1].output[0]
    return [*parts, _node("Add", [total, node.input[-1]], node.output[0], node.name)]


def _mean(node: Any, around: _Surroundings) -> list[Any]:
    """A sum times one over the count."""
    total = around.names(f"{node.output[0]}_sum")
    share = around.constant(1.0 / len(node.input), "float32", f"{node.output[0]}_share")
    whole = type(node)()
    whole.CopyFrom(node)
    whole.output[0] = total
    return [*_sum(whole, around), _node("Mul", [total, share], node.output[0], node.name)]


def _bound(place: int) -> Callable[[Any, _Surroundings], list[Any]]:
    """Of Max and Min with one number: a Clip."""

    def simplified(node: Any, around: _Surroundings) -> list[Any]:
        numbers = [name for name in node.input if _is_number(around.arrays.get(name))]
        others = [name for name in node.input if name not in numbers]
        if len(numbers) != 1 or len(others) != 1:
            return [node]
        inputs = [*others, "", ""]
        shaped = around.arrays[numbers[0]].reshape(())
        inputs[place] = around.constant(shaped, str(shaped.dtype), f"{node.output[0]}_bound")
        inputs = inputs[: place + 1]
        return [_node("Clip", inputs, node.output[0], node.name)]

    return simplified


def _is_number(array: Array | None) -> bool:
    return array is not None and array.size == 1


_SIMPLER: dict[str, Callable[[Any, _Surroundings], list[Any]]] = {
    "Split": _split,
    "Dropout": _dropout,
    "Cast": _cast,
    "BatchNormalization": _batch_normalization,
    "GlobalMaxPool": _global_max_pool,
    "Sum": _sum,
    "Mean": _mean,
    "Max": _bound(1),
    "Min": _bound(2),
}
REWRITTEN = frozenset(_SIMPLER)
