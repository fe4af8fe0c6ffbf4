"""The part of a network between an attention's operands and its context, as a function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from entrain.deploy.lowering.fusion.real_graph import RealGraph
from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.onnx_rewrites.editing import MOVES

_SCALINGS = {"Mul", "Div"}  # by a number
# what may stand between a projection and the quantizer of its result
_BEHIND_PROJECTIONS = {"Add", "Clip", "Relu", *_SCALINGS, *MOVES}
_PRODUCTS = {"MatMul", "Gemm"}
_SCORES = 2  # the context is a product of weights and values, the scores are one before that
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


def find_regions(
    graph: RealGraph, output: str, shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[Region]:
    """What computes a quantized tensor, back to one to three tensors that are quantized too.

    First back to the projections it depends on. Queries and keys may be more than projected, as
    those are that a rotation tells their positions: then back to the operands of the scores.

    Args:
        graph: the network in real numbers.
        output: the quantized tensor.
        shapes: of the quantized tensors that it may read.
    """
    seen = set()
    for to_scores in (False, True):
        region = _Walk(graph, output, shapes, to_scores=to_scores).region()
        if region is not None and region.inputs not in seen:
            seen.add(region.inputs)
            yield region


def held_before(
    graph: RealGraph, output: str, shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[str, bool]]:
    """Quantized tensors that hold a quantized tensor's elements before it, the last one first.

    With each, whether its elements were only moved about since: scaled they mean other numbers.
    """
    names = {graph.quantized[name]: name for name in graph.quantized if name in shapes}
    for tensor, moved in _held_before(graph, graph.quantized[output]):
        if tensor in names:
            yield names[tensor], moved


def _held_before(graph: RealGraph, tensor: str) -> Iterator[tuple[str, bool]]:
    """The same for any tensor, quantized or not."""
    moved = True
    while (node := graph.producers.get(tensor)) is not None:
        moves = node.op_type in MOVES
        if not moves and not (node.op_type in _SCALINGS and _is_number(graph, node.input[1])):
            return
        tensor, moved = node.input[0], moved and moves
        yield tensor, moved


class _Walk:
    """Collects nodes from a quantized tensor backwards, until it comes to quantized tensors."""

    def __init__(
        self,
        graph: RealGraph,
        output: str,
        shapes: Mapping[str, tuple[int, ...]],
        *,
        to_scores: bool,
    ) -> None:
        self._graph = graph
        self._output = output
        self._shapes = shapes
        self._to_scores = to_scores
        known = (name for name in graph.quantized if name in shapes and name != output)
        self._stops = {graph.quantized[name]: name for name in known}
        self._nodes: dict[int, Any] = {}
        self._inputs: dict[str, str] = {}

    def region(self) -> Region | None:
        """None if that is no function of so few tensors, or if it is a projection itself."""
        waiting, seen = [(self._graph.quantized[self._output], 0)], set()
        while waiting:
            tensor, products = waiting.pop()
            if (tensor, products) in seen or tensor in self._graph.constants or not tensor:
                continue
            seen.add((tensor, products))
            if self._ends(tensor, products):
                self._inputs[tensor] = self._stops[tensor]
                continue
            node = self._graph.producers.get(tensor)
            if node is None or len(self._nodes) > LARGEST or _projects(self._graph, node):
                return None  # the network's input, or a projection that nothing quantizes
            self._nodes[id(node)] = node
            products = min(products + _is_product(self._graph, node), _SCORES)
            waiting.extend((name, products) for name in node.input)
        nodes = list(self._nodes.values())
        computed = {name for node in nodes for name in node.output}
        if not 1 <= len(self._inputs) <= 3 or computed & self._inputs.keys():
            return None
        if not _multiplies(self._graph, nodes):
            return None
        return _region(self._graph, nodes, self._inputs, self._output, self._shapes)

    def _ends(self, tensor: str, products: int) -> bool:
        """Whether a tensor is an operand: quantized, and the first that holds these elements."""
        held = _held_before(self._graph, tensor)
        if tensor not in self._stops or any(name in self._stops for name, _ in held):
            return False
        operand = self._to_scores and products == _SCORES
        return operand or _is_projected(self._graph, tensor)


def _is_number(graph: RealGraph, name: str) -> bool:
    array = graph.constants.get(name)
    return array is not None and array.size == 1


def _is_product(graph: RealGraph, node: Any) -> bool:
    """Whether a node is a matrix product of two tensors that are computed."""
    return node.op_type == "MatMul" and not any(name in graph.constants for name in node.input)


def _is_projected(graph: RealGraph, tensor: str) -> bool:
    """Whether a tensor is a projection, with a bias, a ReLU, scaled or moved about at most."""
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
    shapes: Mapping[str, tuple[int, ...]],
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
