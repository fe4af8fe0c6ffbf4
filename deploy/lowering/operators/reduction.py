"""Sums and maxima over axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import UNBOUNDED, Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import static_shape
from entrain.deploy.lowering.operators.intervals import times


def _reduced(shape: Shape, axes: tuple[int, ...]) -> Shape:
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))


def _reduce(name: str, operand: Any, axes: tuple[int, ...], dtype: str, how: str) -> Any:
    from tvm import te

    shape = static_shape(operand)
    loops = {axis: te.reduce_axis((0, shape[axis]), name=f"{name}_{axis}") for axis in axes}
    combine: Callable[..., Any] = getattr(te, how)
    return te.compute(
        _reduced(shape, axes),
        lambda *i: combine(
            operand(*(loops.get(axis, index) for axis, index in enumerate(i))).astype(dtype),
            axis=list(loops.values()),
        ),
        name=name,
    )


@dataclass(frozen=True)
class Sum:
    """Sum over ``axes``, which stay with extent 1.

    Floating-point sums run in row-major order, one after the other, as a C loop does.
    """

    axes: tuple[int, ...]
    dtype: str

    def result(self, operand: Node) -> tuple[Shape, str]:
        """The summed axes get extent 1."""
        return _reduced(operand.shape, self.axes), self.dtype

    def interval(self, operand: Node) -> Interval:
        """As often the operand's as there are summands."""
        if self.dtype == "float32":
            return UNBOUNDED
        return times(prod(operand.shape[axis] for axis in self.axes), operand.interval)

    def reference(self, operand: Array) -> Array:
        """Sequential, not pairwise as numpy's sum."""
        kept = [axis for axis in range(operand.ndim) if axis not in self.axes]
        shape = _reduced(operand.shape, self.axes)
        moved = np.transpose(operand, (*kept, *self.axes)).astype(self.dtype)
        flat = moved.reshape(*(operand.shape[axis] for axis in kept), -1)
        total = np.zeros(flat.shape[:-1], self.dtype)
        for k in range(flat.shape[-1]):
            total = total + flat[..., k]
        return total.reshape(shape)

    def compute(self, name: str, operand: Any) -> Any:
        """A reduction."""
        return _reduce(name, operand, self.axes, self.dtype, "sum")


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
