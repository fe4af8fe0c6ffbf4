"""From a layer's expression to a TensorIR function."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array, Layer, Node, Value
from entrain.deploy.lowering.operators.broadcasting import element, static_shape
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.gather import Gather
from entrain.deploy.lowering.operators.leaves import Constant, Load
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.operators.quantizers import Requantize


@dataclass(frozen=True)
class Primitive:
    """A layer's TensorIR and what its parameters are, in order; the last one is the output."""

    layer: Layer
    function: Any
    inputs: tuple[Value, ...]
    constants: tuple[tuple[str, Array], ...]


# what each operand is to the operator that reads it, so that generated C says so
_ROLES: dict[type, Callable[[Any], Sequence[str]]] = {
    MatMul: lambda _: ("weights", "weights"),
    Convolution: lambda _: ("weights", "weights"),
    Lookup: lambda _: ("index", "table"),
    Gather: lambda _: ("index", "table"),
    Requantize: lambda requantize: (
        *["constant"] * requantize.terms,
        *["multipliers"] * requantize.terms,
        "bias",
    ),
}


def _roles(nodes: list[Node]) -> dict[int, str]:
    """The role of every node that an operator reads, by the node's id."""
    roles: dict[int, str] = {}
    for node in nodes:
        if type(node.operator) in _ROLES:
            names = _ROLES[type(node.operator)](node.operator)
            for operand, name in zip(node.operands, names, strict=True):
                roles.setdefault(id(operand), name)
    return roles


class _Parameters:
    """The buffers that a function reads: each value once, each different constant array once."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[Value, Any]] = {}
        self.constants: list[tuple[str, Array, Any]] = []

    def load(self, leaf: Load) -> Any:
        """The te tensor of a value."""
        name = leaf.value.name
        if name not in self.values:
            self.values[name] = (leaf.value, leaf.compute(f"{name}_in"))
        return self.values[name][1]

    def constant(self, leaf: Constant, role: str) -> Any:
        """The te tensor of a constant; a single number becomes a literal."""
        array = leaf.array
        if array.size == 1:
            return leaf.compute(role)
        for _, known, tensor in self.constants:
            if known.dtype == array.dtype and np.array_equal(known, array):
                return tensor
        count = sum(name.rstrip("_0123456789") == role for name, _, _ in self.constants)
        name = role if count == 0 else f"{role}_{count + 1}"
        self.constants.append((name, array, leaf.compute(name)))
        return self.constants[-1][2]


@dataclass(frozen=True)
class Tensors:
    """A layer in te tensors: what it reads, what it computes on the way, and its result."""

    values: tuple[tuple[Value, Any], ...]
    constants: tuple[tuple[str, Array, Any], ...]
    intermediate: tuple[Any, ...]
    result: Any


def layer_tensors(layer: Layer) -> Tensors:
    """The operators' te tensors.

    Single-number constants become literals; larger ones become parameters, named by their role.
    """
    nodes = list(layer.expression.walk())
    roles = _roles(nodes)
    parameters = _Parameters()
    tensors: dict[int, Any] = {}
    computed: list[Any] = []
    for position, node in enumerate(nodes):
        match node.operator:
            case Load() as leaf:
                tensors[id(node)] = parameters.load(leaf)
            case Constant() as leaf:
                tensors[id(node)] = parameters.constant(leaf, roles.get(id(node), "constant"))
            case operator:
                last = position == len(nodes) - 1
                name = "output" if last else f"{_word(type(operator).__name__)}_{position}"
                operands = [tensors[id(operand)] for operand in node.operands]
                tensors[id(node)] = operator.compute(name, *operands)
                computed.append(tensors[id(node)])
    result = tensors[id(layer.expression)]
    if result.op.name != "output":  # bytes as they lie, or in another shape alone
        computed.append(_copied(result))
    return Tensors(
        tuple(parameters.values.values()),
        tuple(parameters.constants),
        tuple(computed[:-1]),
        computed[-1],
    )


def _copied(tensor: Any) -> Any:
    from tvm import te

    shape = static_shape(tensor)
    return te.compute(shape, lambda *i: element(tensor, shape, i), name="output")


def _word(name: str) -> str:
    """A class's name as C writes names: in small letters, with underscores."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def build_primitive(layer: Layer) -> Primitive:
    """One TensorIR function of a layer's tensors."""
    from tvm import te

    tensors = layer_tensors(layer)
    buffers = [tensor for _, tensor in tensors.values]
    buffers += [tensor for _, _, tensor in tensors.constants]
    function = te.create_prim_func([*buffers, tensors.result])
    return Primitive(
        layer,
        function.with_attr("global_symbol", layer.symbol),
        tuple(value for value, _ in tensors.values),
        tuple((name, array) for name, array, _ in tensors.constants),
    )
