"""The lowered network: layers between integer tensors, each an expression over operators.

A :class:`Value` is an integer tensor that a layer writes and others read. A :class:`Layer` computes
one value from others by an expression, a tree of :class:`Node`. Each node's operator knows its
numpy reference and its TensorIR (``operators/``), so the interpreter and the generated C come
from the same tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, prod
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from entrain.deploy.lowering.tensors import sole

Array = NDArray[Any]
Shape = tuple[int, ...]
Interval = tuple[float, float]

UNBOUNDED: Interval = (-inf, inf)
BYTES = ("int8", "uint8")  # what values between layers may be


class Operator(Protocol):
    """What a node computes. One file of ``operators/`` each, a frozen dataclass of attributes.

    All four are methods over the operands, as many as the operator has.
    """

    @property
    def result(self) -> Callable[..., tuple[Shape, str]]:
        """Shape and numpy dtype of the result for these operand nodes."""

    @property
    def interval(self) -> Callable[..., Interval]:
        """Smallest and largest integer, partial sums included; UNBOUNDED for single precision."""

    @property
    def reference(self) -> Callable[..., Array]:
        """The result in numpy, bit for bit what the generated C computes."""

    @property
    def compute(self) -> Callable[..., Any]:
        """The result as a ``tvm.te`` tensor, given its name and the operands' te tensors."""


@runtime_checkable
class Product(Protocol):
    """An operator that multiplies and adds: a matrix product or a convolution."""

    @property
    def macs(self) -> Callable[..., int]:
        """Multiply-adds for these operand nodes."""


@dataclass(frozen=True, eq=False)
class Node:
    """An operator applied to operands; compared by identity, since trees share nodes."""

    operator: Operator
    operands: tuple[Node, ...]
    shape: Shape
    dtype: str
    interval: Interval

    def walk(self) -> Iterator[Node]:
        """Every node below and including this one, operands first, each once."""
        seen: set[int] = set()
        stack = [(self, False)]
        while stack:
            node, expanded = stack.pop()
            if expanded:
                yield node
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack.extend((operand, False) for operand in reversed(node.operands))


@dataclass(frozen=True)
class Value:
    """An integer tensor between layers: ``real = scale * (q - zero_point)``.

    ``onnx_output`` is the tensor's name in the ONNX file it came from. Axis k is axis ``axes[k]``
    of that tensor; None: they are in the same order.
    """

    name: str
    shape: Shape
    dtype: str
    scale: float
    zero_point: int
    onnx_output: str
    axes: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """Number of elements; also bytes, since every value is 8 bits wide."""
        return prod(self.shape)

    def from_onnx(self, array: Array) -> Array:
        """An array in the order of the ONNX tensor, in the order in which this one is stored."""
        return (array if self.axes is None else array.transpose(self.axes)).reshape(self.shape)


@dataclass(frozen=True)
class Layer:
    """One C function of the model: reads ``inputs``, writes ``output``."""

    name: str
    title: str
    inputs: tuple[Value, ...]
    output: Value
    expression: Node

    @property
    def symbol(self) -> str:
        """The C function's name."""
        return f"layer_{self.name}"

    @property
    def macs(self) -> int:
        """Multiply-adds of its convolutions and matrix products."""
        return sum(
            node.operator.macs(*node.operands)
            for node in self.expression.walk()
            if isinstance(node.operator, Product)
        )


@dataclass(frozen=True)
class LoweredGraph:
    """A whole network in integers, layers in the order in which they run.

    Inputs and outputs are in the order of the ONNX file.
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    layers: tuple[Layer, ...]

    @property
    def input(self) -> Value:
        """The only input; ModelError if there are several."""
        return sole(self.inputs, "input")

    @property
    def output(self) -> Value:
        """The only output; ModelError if there are several."""
        return sole(self.outputs, "output")

    @property
    def macs(self) -> int:
        """Multiply-adds of one inference."""
        return sum(layer.macs for layer in self.layers)
