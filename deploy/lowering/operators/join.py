"""Tensors put one behind the other, and constants put around one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import static_shape


@dataclass(frozen=True)
class Join:
    """Operands one behind the other along ``axis``; int32 unless all have the same type."""

    axis: int

    def result(self, *operands: Node) -> tuple[Shape, str]:
        """The extents along the axis add up."""
        shape = list(operands[0].shape)
        shape[self.axis] = sum(operand.shape[self.axis] for operand in operands)
        return tuple(shape), _common({operand.dtype for operand in operands})

    def interval(self, *operands: Node) -> Interval:
        """What covers all of them."""
        lows, highs = zip(*(operand.interval for operand in operands), strict=True)
        return min(lows), max(highs)

    def reference(self, *operands: Array) -> Array:
        """The same in numpy."""
        dtype = _common({str(operand.dtype) for operand in operands})
        return np.concatenate([operand.astype(dtype) for operand in operands], axis=self.axis)

    def compute(self, name: str, *operands: Any) -> Any:
        """A choice by index; inlined into the reader."""
        from tvm import te, tirx

        dtype = _common({str(operand.dtype) for operand in operands})
        shapes = [static_shape(operand) for operand in operands]
        ends = list(accumulate(shape[self.axis] for shape in shapes))
        starts = [0, *ends[:-1]]

        def element(*i: Any) -> Any:
            def within(k: int) -> Any:
                place = i[self.axis] - starts[k]
                inside = operands[k](*i[: self.axis], place, *i[self.axis + 1 :])
                return inside.astype(dtype)

            chosen = within(len(operands) - 1)
            for k in reversed(range(len(operands) - 1)):
                chosen = tirx.if_then_else(i[self.axis] < ends[k], within(k), chosen)
            return chosen

        shape = (*shapes[0][: self.axis], ends[-1], *shapes[0][self.axis + 1 :])
        return te.compute(shape, element, name=name)


@dataclass(frozen=True)
class Pad:
    """``before[k]`` and ``after[k]`` elements of the value ``fill`` around axis k."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    fill: int

    def result(self, operand: Node) -> tuple[Shape, str]:
        """Extents grow by both sides."""
        return self._grown(operand.shape), operand.dtype

    def interval(self, operand: Node) -> Interval:
        """That of the operand, and the fill."""
        low, high = operand.interval
        return min(low, self.fill), max(high, self.fill)

    def reference(self, operand: Array) -> Array:
        """The same in numpy."""
        sides = list(zip(self.before, self.after, strict=True))
        return np.pad(operand, sides, constant_values=self.fill)

    def compute(self, name: str, operand: Any) -> Any:
        """A choice by index; inlined into the reader."""
        from tvm import te, tirx

        shape, dtype = static_shape(operand), str(operand.dtype)

        def element(*i: Any) -> Any:
            places = [index - b for index, b in zip(i, self.before, strict=True)]
            inside = [
                condition
                for place, extent, b, a in zip(places, shape, self.before, self.after, strict=True)
                for condition in ([place >= 0] * bool(b) + [place < extent] * bool(a))
            ]
            return tirx.if_then_else(
                tirx.all(*inside), operand(*places), tirx.const(self.fill, dtype)
            )

        return te.compute(self._grown(shape), element, name=name)

    def _grown(self, shape: Shape) -> Shape:
        return tuple(b + n + a for b, n, a in zip(self.before, shape, self.after, strict=True))


def _common(dtypes: set[str]) -> str:
    return dtypes.pop() if len(dtypes) == 1 else "int32"
