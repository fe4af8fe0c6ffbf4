"""From wide integers to narrower ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.arithmetic import FixedPoint, requantize
from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import element, static_shape


@dataclass(frozen=True)
class Requantize:
    """``clip(zero_point + round(sum_k multiplier_k * operand_k + bias))``, all in integers.

    Operands: the int32 operands, then as many multipliers, then the bias
    (:func:`entrain.deploy.arithmetic.requantize`).
    """

    shape: Shape
    dtype: str
    terms: int
    bias_shift: int
    shift: int
    zero_point: int
    low: int
    high: int

    def result(self, *_operands: Node) -> tuple[Shape, str]:
        """Fixed by the value that the layer writes."""
        return self.shape, self.dtype

    def interval(self, *_operands: Node) -> Interval:
        """What it clips to."""
        return self.low, self.high

    def reference(self, *operands: Array) -> Array:
        """deploy.arithmetic's definition."""
        multipliers = operands[self.terms : 2 * self.terms]
        fixed = FixedPoint(multipliers, operands[-1], self.bias_shift, self.shift)
        clipped = requantize(
            operands[: self.terms],
            fixed,
            zero_point=self.zero_point,
            low=self.low,
            high=self.high,
        )
        return np.broadcast_to(clipped.astype(self.dtype), self.shape)

    def compute(self, name: str, *operands: Any) -> Any:
        """64-bit multiply-add, shift, clip; calls ``entrain_requantize`` of the C kernels."""
        from tvm import te, tirx

        shapes = [static_shape(operand) for operand in operands]

        def at(k: int, i: tuple[Any, ...]) -> Any:
            return element(operands[k], shapes[k], i).astype("int64")

        def clipped(*i: Any) -> Any:
            total = at(2 * self.terms, i) * tirx.const(1 << self.bias_shift, "int64")
            for k in range(self.terms):
                total = total + at(k, i) * at(self.terms + k, i)
            rounded = tirx.call_pure_extern(
                "int32",
                "entrain_requantize",
                total,
                *(tirx.const(c, "int32") for c in (self.shift, self.zero_point)),
                *(tirx.const(c, "int32") for c in (self.low, self.high)),
            )
            return rounded.astype(self.dtype)

        return te.compute(self.shape, clipped, name=name)


@dataclass(frozen=True)
class Narrow:
    """``(x + 2**(shift-1)) >> shift``: fewer bits, to nearest, halves upwards. shift >= 1."""

    shift: int

    def result(self, operand: Node) -> tuple[Shape, str]:
        """Shape of the operand."""
        return operand.shape, "int32"

    def interval(self, operand: Node) -> Interval:
        """The operand's ends, narrowed."""
        low, high = (int(end) for end in operand.interval)
        half = 1 << (self.shift - 1)
        return (low + half) >> self.shift, (high + half) >> self.shift

    def reference(self, operand: Array) -> Array:
        """The same in numpy."""
        half = np.int64(1) << np.int64(self.shift - 1)
        narrowed: Array = (operand.astype(np.int64) + half) >> np.int64(self.shift)
        return narrowed.astype(np.int32)

    def compute(self, name: str, operand: Any) -> Any:
        """An addition and a shift; the sum must fit 32 bits."""
        from tvm import te

        half = 1 << (self.shift - 1)
        return te.compute(
            static_shape(operand),
            lambda *i: (operand(*i).astype("int32") + half) >> self.shift,
            name=name,
        )
