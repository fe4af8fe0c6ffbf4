"""Sums and maxima over axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import static_shape
from entrain.deploy.lowering.operators.intervals import times


def _reduced(shape: Shape, axes: tuple[int, ...]) -> Shape:
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))


def _reduce(
    name: str,
    operand: Any,
    axes: tuple[int, ...],
    dtype: str,
    how: str,
    of: Callable[[Any], Any] = lambda x: x,
) -> Any:
    from tvm import te

    shape = static_shape(operand)
    loops = {axis: te.reduce_axis((0, shape[axis]), name=f"{name}_{axis}") for axis in axes}
    combine: Callable[..., Any] = getattr(te, how)
    return te.compute(
        _reduced(shape, axes),
        lambda *i: combine(
            of(operand(*(loops.get(axis, index) for axis, index in enumerate(i))).astype(dtype)),
            axis=list(loops.values()),
        ),
        name=name,
    )


@dataclass(frozen=True)
class Sum:
    """Sum over ``axes`` in int32; the axes stay with extent 1."""

    axes: tuple[int, ...]

    def result(self, operand: Node) -> tuple[Shape, str]:
        """The summed axes get extent 1."""
        return _reduced(operand.shape, self.axes), "int32"

    def interval(self, operand: Node) -> Interval:
        """As often the operand's as there are summands."""
        return times(prod(operand.shape[axis] for axis in self.axes), operand.interval)

    def reference(self, operand: Array) -> Array:
        """The same in numpy."""
        total: Array = operand.sum(axis=self.axes, keepdims=True, dtype=np.int32)
        return total

    def compute(self, name: str, operand: Any) -> Any:
        """A reduction."""
        return _reduce(name, operand, self.axes, "int32", "sum")


@dataclass(frozen=True)
class Peak:
    """Largest integer along ``axes``, which stay with extent 1."""

    axes: tuple[int, ...]

    def result(self, operand: Node) -> tuple[Shape, str]:
        """The axes get extent 1."""
        return _reduced(operand.shape, self.axes), "int32"

    def interval(self, operand: Node) -> Interval:
        """That of the operand."""
        return operand.interval

    def reference(self, operand: Array) -> Array:
        """The same in numpy."""
        largest: Array = operand.max(axis=self.axes, keepdims=True)
        return largest.astype(np.int32)

    def compute(self, name: str, operand: Any) -> Any:
        """A reduction."""
        return _reduce(name, operand, self.axes, "int32", "max")


@dataclass(frozen=True)
class SumOfSquares:
    """``sum x^2`` over ``axes`` in 64 bits; the axes stay with extent 1."""

    axes: tuple[int, ...]

    header = "entrain_ratios.h"

    def result(self, operand: Node) -> tuple[Shape, str]:
        """The axes get extent 1."""
        return _reduced(operand.shape, self.axes), "int64"

    def interval(self, operand: Node) -> Interval:
        """As often the largest square as there are summands."""
        most = max(int(end) ** 2 for end in operand.interval)
        return 0, prod(operand.shape[axis] for axis in self.axes) * most

    def reference(self, operand: Array) -> Array:
        """The same in numpy."""
        wide = operand.astype(np.int64)
        total: Array = (wide * wide).sum(axis=self.axes, keepdims=True, dtype=np.int64)
        return total

    def compute(self, name: str, operand: Any) -> Any:
        """A reduction of ``entrain_square`` of the C kernels."""
        from tvm import tirx

        def squared(x: Any) -> Any:
            return tirx.call_pure_extern("int64", "entrain_square", x)

        return _reduce(name, operand, self.axes, "int32", "sum", squared)
