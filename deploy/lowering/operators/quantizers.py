"""From wide numbers to 8 bits: integer requantization, and quantization of single precision."""

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
class Quantize:
    """``clip(zero_point + nearest(x * inverse_scale))``, ties to even, x single precision."""

    dtype: str
    inverse_scale: float
    zero_point: int
    low: int
    high: int

    def result(self, operand: Node) -> tuple[Shape, str]:
        """Shape of the operand."""
        return operand.shape, self.dtype

    def interval(self, _operand: Node) -> Interval:
        """What it clips to."""
        return self.low, self.high

    def reference(self, operand: Array) -> Array:
        """IEEE single precision, clipped before it is rounded."""
        low, high = np.float32(self.low - self.zero_point), np.float32(self.high - self.zero_point)
        with np.errstate(all="ignore"):
            steps = operand.astype(np.float32) * np.float32(self.inverse_scale)
        steps = np.where(steps > low, steps, low)
        steps = np.where(steps < high, steps, high)
        nearest: Array = np.rint(steps).astype(np.int32) + self.zero_point
        return nearest.astype(self.dtype)

    def compute(self, name: str, operand: Any) -> Any:
        """Calls ``entrain_quantize`` of the C kernels."""
        from tvm import te, tirx

        return te.compute(
            static_shape(operand),
            lambda *i: tirx.call_pure_extern(
                "int32",
                "entrain_quantize",
                operand(*i) * tirx.const(self.inverse_scale, "float32"),
                *(tirx.const(c, "int32") for c in (self.zero_point, self.low, self.high)),
            ).astype(self.dtype),
            name=name,
        )
