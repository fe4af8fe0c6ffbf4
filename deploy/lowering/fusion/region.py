"""The part of a network between projected tokens and an attention's context, as a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from entrain.deploy.lowering.fusion.real_graph import RealGraph
from entrain.deploy.lowering.graph import Array

# what may stand between a projection and the quantizer of its result
_BEHIND_PROJECTIONS = ("Add", "Clip", "Identity", "Relu", "Reshape", "Transpose")
_PRODUCTS = ("MatMul", "Gemm")
LARGEST = 400  # nodes; no attention has as many


@dataclass(frozen=True)
class Region:
    """A function of one to three quantized tensors.

    Attributes:
        inputs: the quantized tensors that it reads, by their ONNX names.
        output: the quantized tensor that it computes.
        model: the function in real numbers, as ONNX.
        arrays: the constant arrays in it that are more than a number.
        numbers: the constant numbers in it.
        operators: the names of its ONNX operators.
    """

    inputs: tuple[str, ...]
    output: str
    model: bytes
    arrays: tuple[Array, ...]
    numbers: tuple[float, ...]
    operators: frozenset[str]

    @cached_property
    def _session(self) -> Any:
        from entrain.deploy.onnx_session import session_of

        return session_of(self.model, self.output)

    def evaluate(self, inputs: Sequence[Array]) -> Array:
        """The output for real inputs of the tensors' shapes, in single precision."""
        names = [each.name for each in self._session.get_inputs()]
        given = {n: np.asarray(x, np.float32) for n, x in zip(names, inputs, strict=True)}
        (output,) = self._session.run(None, given)
        result: Array = np.asarray(output, np.float64)
        return result


def find_region(graph: RealGraph, output: str, shapes: dict[str, tuple[int, ...]]) -> Region | None:
    """What computes a quantized tensor, back to the projections it depends on.

    Args:
        graph: the network in real numbers.
        output: the quantized tensor.
        shapes: of the quantized tensors that it may read.

    Returns:
        None if that is no function of one to three projected tensors, or if it is a projection
        itself.
    """
    stops = {real: name for name, real in graph.quantized.items() if name != output}
    nodes: list[Any] = []
    inputs: dict[str, str] = {}
    waiting, seen = [graph.quantized[output]], set()
    while waiting:
        tensor = waiting.pop()
        if tensor in seen or tensor in graph.constants or not tensor:
            continue
        seen.add(tensor)
        if stops.get(tensor) in shapes and _is_projected(graph, tensor):
            inputs[tensor] = stops[tensor]
            continue
        node = graph.producers.get(tensor)
        if node is None or len(nodes) > LARGEST or _projects(graph, node):
            return None  # the network's input, or a projection that nothing quantizes
        nodes.append(node)
        waiting.extend(node.input)
    if not 1 <= len(inputs) <= 3 or not _multiplies(graph, nodes):
        return None
    return _region(graph, nodes, inputs, output, shapes)


def _is_projected(graph: RealGraph, tensor: str) -> bool:
    """Whether a tensor is a projection, with a bias, a ReLU or moved about at most."""
    while (node := graph.producers.get(tensor)) is not None:
        if _projects(graph, node):
            return True
        computed = [name for name in node.input if name and name not in graph.constants]
        if node.op_type not in _BEHIND_PROJECTIONS or len(computed) != 1:
            return False
        (tensor,) = computed
    return False


def _projects(graph: RealGraph, node: Any) -> bool:
    """Whether a node multiplies by a constant matrix, every token alike."""
    if node.op_type == "Conv":
        return True
    if node.op_type not in _PRODUCTS:
        return False
    matrix = graph.constants.get(node.input[1])
    return matrix is not None and matrix.ndim == 2


def _multiplies(graph: RealGraph, nodes: list[Any]) -> bool:
    """Whether anything computed is multiplied by anything computed: attention, not a layer."""
    return any(
        node.op_type in ("MatMul", "Mul", "Div")
        and all(name not in graph.constants for name in node.input)
        for node in nodes
    )


def _region(
    graph: RealGraph,
    nodes: list[Any],
    inputs: dict[str, str],
    output: str,
    shapes: dict[str, tuple[int, ...]],
) -> Region:
    from onnx import TensorProto, helper, numpy_helper

    chosen = {id(node) for node in nodes}
    ordered = [node for node in graph.nodes if id(node) in chosen]
    used = {name for node in ordered for name in node.input if name in graph.constants}
    real = graph.quantized[output]
    function = helper.make_graph(
        ordered,
        "region",
        [helper.make_tensor_value_info(t, TensorProto.FLOAT, shapes[q]) for t, q in inputs.items()],
        [helper.make_tensor_value_info(real, TensorProto.FLOAT, None)],
        initializer=[numpy_helper.from_array(graph.constants[name], name) for name in sorted(used)],
    )
    model = helper.make_model(function, opset_imports=[helper.make_opsetid("", graph.opset)])
    model.ir_version = graph.ir_version
    arrays = [graph.constants[name] for name in sorted(used)]
    reals = [array.astype(np.float64) for array in arrays if array.dtype.kind == "f"]
    return Region(
        tuple(inputs.values()),
        output,
        model.SerializeToString(),
        tuple(array for array in reals if prod(array.shape) > 1),
        tuple(float(array.item()) for array in reals if prod(array.shape) == 1),
        frozenset(node.op_type for node in ordered),
    )
