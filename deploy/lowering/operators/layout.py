"""Operators that move elements without computing: reshape, permute, broadcast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.broadcasting import element, static_shape


@dataclass(frozen=True)
class Reshape:
    """The same elements in row-major order under another shape."""

    shape: Shape

    def result(self, operand: Node) -> tuple[Shape, str]:
        """The new shape."""
        return self.shape, operand.dtype

    def interval(self, operand: Node) -> Interval:
        """That of the operand."""
        return operand.interval

    def reference(self, operand: Array) -> Array:
        """The same in numpy."""
        return operand.reshape(self.shape)

    def compute(self, _name: str, operand: Any) -> Any:
        """Index arithmetic, inlined into the reader."""
        from tvm import topi

        return topi.reshape(operand, self.shape)


@dataclass(frozen=True)
class Permute:
    """Axis k of the result is axis ``axes[k]`` of the operand."""

    axes: tuple[int, ...]

    def result(self, operand: Node) -> tuple[Shape, str]:
        """The permuted shape."""
        return tuple(operand.shape[axis] for axis in self.axes), operand.dtype

    def interval(self, operand: Node) -> Interval:
        """That of the operand."""
        return operand.interval

    def reference(self, operand: Array) -> Array:
        """The same in numpy."""
        return np.transpose(operand, self.axes)

    def compute(self, name: str, operand: Any) -> Any:
        """Index arithmetic, inlined into the reader."""
        from tvm import te

        shape = static_shape(operand)
        place = [self.axes.index(axis) for axis in range(len(shape))]
        return te.compute(
            tuple(shape[axis] for axis in self.axes),
            lambda *i: operand(*(i[k] for k in place)),
            name=name,
        )


def permuted(node: Node, axes: tuple[int, ...]) -> Node:
    """The node with permuted axes; two permutations in a row become one, or none."""
    if isinstance(node.operator, Permute):
        inner = node.operator.axes
        return permuted(node.operands[0], tuple(inner[axis] for axis in axes))
    return node if axes == tuple(range(len(axes))) else apply(Permute(axes), node)


@dataclass(frozen=True)
class Broadcast:
    """Repeat along axes of extent 1 and along new leading axes."""

    shape: Shape

    def result(self, operand: Node) -> tuple[Shape, str]:
        """The new shape."""
        return self.shape, operand.dtype

    def interval(self, operand: Node) -> Interval:
        """That of the operand."""
        return operand.interval

    def reference(self, operand: Array) -> Array:
        """The same in numpy."""
        return np.broadcast_to(operand, self.shape)

    def compute(self, name: str, operand: Any) -> Any:
        """Index arithmetic, inlined into the reader."""
        from tvm import te

        shape = static_shape(operand)
        return te.compute(self.shape, lambda *i: element(operand, shape, i), name=name)


@dataclass(frozen=True)
class Slice:
    """``count`` elements along ``axis``: ``start``, ``start + step`` and so on."""

    axis: int
    start: int
    step: int
    count: int

    def result(self, operand: Node) -> tuple[Shape, str]:
        """The axis gets the extent ``count``."""
        before, after = operand.shape[: self.axis], operand.shape[self.axis + 1 :]
        return (*before, self.count, *after), operand.dtype

    def interval(self, operand: Node) -> Interval:
        """That of the operand."""
        return operand.interval

    def reference(self, operand: Array) -> Array:
        """The same in numpy."""
        places = self.start + self.step * np.arange(self.count)
        return operand.take(places, axis=self.axis)

    def compute(self, name: str, operand: Any) -> Any:
        """Index arithmetic, inlined into the reader."""
        from tvm import te

        shape = list(static_shape(operand))
        shape[self.axis] = self.count

        def element(*i: Any) -> Any:
            place = self.start + self.step * i[self.axis]
            return operand(*i[: self.axis], place, *i[self.axis + 1 :])

        return te.compute(tuple(shape), element, name=name)
