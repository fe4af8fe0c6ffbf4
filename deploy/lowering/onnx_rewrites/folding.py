"""Whatever can be computed when lowering is a constant: shapes above all."""

from __future__ import annotations

from collections.abc import Callable, Set
from math import prod
from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.onnx_rewrites.editing import (
    add_constant,
    constants,
    describe_node,
    is_output,
    replace_graph,
    shapes,
)
from entrain.deploy.onnx_session import OnnxSession

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
FOLDED = frozenset(
    {
        QUANTIZE,
        *("Constant", "Shape", "Size", "ConstantOfShape", "Range", "Cast", "CastLike", "Identity"),
        *("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand", "Tile"),
        *("Gather", "GatherND", "Slice", "Concat", "Split", "Pad", "Where", "NonZero", "Trilu"),
        *("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Neg", "Abs", "Sqrt", "Reciprocal"),
        *("Exp", "Log", "Erf", "Sigmoid", "Tanh", "Relu", "Softmax", "Clip", "Min", "Max"),
        *("Floor", "Ceil", "Round", "Sign", "Equal", "Less", "LessOrEqual", "Greater"),
        *("GreaterOrEqual", "And", "Or", "Not", "ReduceSum", "ReduceMean", "ReduceProd"),
        *("ReduceMax", "ReduceMin", "MatMul", "Gemm"),
    }
)
MOST_ELEMENTS = 1 << 24  # of a folded array: more than any firmware holds


def fold_constants(model: Any) -> None:
    """Compute nodes that read constants only, and the shapes of tensors, until none is left."""
    del model.graph.value_info[:]  # what an exporter wrote there may name a symbolic batch
    arrays = constants(model)
    while _fold(model, arrays):
        pass


def _fold(model: Any, arrays: dict[str, Array]) -> bool:
    """One round over the graph; whether the shape of anything became known by it."""
    extents = shapes(model)
    weights: dict[str, Any] = {}  # what is constant, but stays integers with a step
    kept, shaped = [], False
    for node in model.graph.node:
        results: dict[str, Array] | None = None
        if node.op_type == "Constant" and node.output[0] in arrays:
            results = {node.output[0]: arrays[node.output[0]]}
        elif node.op_type == "Shape" and node.input[0] in extents:
            results = _computed(model, [node], {node.input[0]: np.zeros(extents[node.input[0]])})
            shaped = True
        elif _foldable(model, node, arrays.keys() | weights.keys()):
            if node.op_type == QUANTIZE or not weights.keys() & set(node.input):
                results = _computed(model, _with_weights(node, weights), arrays)
            else:
                weights.update(dict.fromkeys(node.output, node))
        elif node.op_type == DEQUANTIZE and all(name in arrays for name in node.input if name):
            weights[node.output[0]] = node
        if results is None:
            kept.append(node)
            continue
        for name, array in results.items():
            arrays[name] = array
            add_constant(model, array, name)
    replace_graph(model, kept)
    return shaped


def _foldable(model: Any, node: Any, known: Set[str]) -> bool:
    """Whether a node may be computed when lowering, from what is known."""
    own = node.domain in ("", "ai.onnx") and node.op_type in FOLDED
    return (
        own
        and all(name in known for name in node.input if name)
        and not any(is_output(model, name) for name in node.output)
    )


def _with_weights(node: Any, weights: dict[str, Any]) -> list[Any]:
    """The node, after those among the weights that it depends on."""
    before: list[Any] = []
    for name in node.input:
        if name in weights:
            before += [n for n in _with_weights(weights[name], weights) if n not in before]
    return [*before, node]


def _computed(model: Any, nodes: list[Any], arrays: dict[str, Array]) -> dict[str, Array]:
    """What the last node writes, by onnxruntime."""
    from onnx import helper, numpy_helper

    last = nodes[-1]
    _check_size(last, arrays)
    written = {name for node in nodes for name in node.output}
    needed = {name for node in nodes for name in node.input if name} - written
    graph = helper.make_graph(
        nodes,
        "constants",
        [],
        [helper.make_empty_tensor_value_info(name) for name in last.output if name],
        initializer=[numpy_helper.from_array(arrays[name], name) for name in sorted(needed)],
    )
    whole = helper.make_model(graph, opset_imports=model.opset_import)
    whole.ir_version = model.ir_version
    session = OnnxSession(whole.SerializeToString(), f"constants of node {describe_node(last)}")
    return {name: np.asarray(array) for name, array in session.run({}).items()}


def _check_size(node: Any, arrays: dict[str, Array]) -> None:
    """Refuse what would fill the memory of this machine."""
    growing: dict[str, Callable[..., float]] = {
        "ConstantOfShape": lambda shape: prod(map(int, shape.ravel())),
        "Range": lambda start, limit, delta: float((limit - start) / delta) if delta else 0,
        "Expand": lambda array, shape: array.size * prod(map(int, shape.ravel())),
        "Tile": lambda array, repeats: array.size * prod(map(int, repeats.ravel())),
    }
    if node.op_type not in growing:
        return
    elements = growing[node.op_type](*(arrays[name] for name in node.input))
    if elements > MOST_ELEMENTS:
        raise UnsupportedOperator(
            f"node {describe_node(node)} ({node.op_type}) makes a constant of up to "
            f"{elements:.0f} elements",
            remedy="make the model smaller",
        )
