"""Quotients and inverse roots: a factor for each divisor, then multiplications and shifts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.arithmetic import reciprocal_factor, root_factor, scaled
from entrain.deploy.arithmetic.ratios import EXPONENT_BITS, LARGEST_MANTISSA
from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import element, static_shape

HEADER = "entrain_ratios.h"
_LARGEST_FACTOR = (LARGEST_MANTISSA + 1) << EXPONENT_BITS


@dataclass(frozen=True)
class ReciprocalFactor:
    """The factor that stands for ``1/d``, element by element (deploy.arithmetic.ratios)."""

    header = HEADER

    def result(self, d: Node) -> tuple[Shape, str]:
        """One int32 for each divisor."""
        return d.shape, "int32"

    def interval(self, d: Node) -> Interval:
        """Negative for negative divisors alone."""
        return 0 if d.interval[0] >= 0 else -_LARGEST_FACTOR, _LARGEST_FACTOR

    def reference(self, d: Array) -> Array:
        """deploy.arithmetic's definition."""
        return reciprocal_factor(d).astype(np.int32)

    def compute(self, name: str, d: Any) -> Any:
        """One 32-bit division each, in ``entrain_reciprocal_factor`` of the C kernels."""
        from tvm import te, tirx

        return te.compute(
            static_shape(d),
            lambda *i: tirx.call_pure_extern(
                "int32", "entrain_reciprocal_factor", d(*i).astype("int32")
            ),
            name=name,
        )


@dataclass(frozen=True)
class RootFactor:
    """The factor that stands for ``1/sqrt(s + tiny)``, element by element."""

    tiny: int = 0

    header = HEADER

    def result(self, s: Node) -> tuple[Shape, str]:
        """One int32 for each."""
        return s.shape, "int32"

    def interval(self, _s: Node) -> Interval:
        """Never negative."""
        return 0, _LARGEST_FACTOR

    def reference(self, s: Array) -> Array:
        """deploy.arithmetic's definition."""
        return root_factor(s.astype(np.int64) + self.tiny).astype(np.int32)

    def compute(self, name: str, s: Any) -> Any:
        """``entrain_root_factor`` of the C kernels."""
        from tvm import te, tirx

        return te.compute(
            static_shape(s),
            lambda *i: tirx.call_pure_extern(
                "int32",
                "entrain_root_factor",
                s(*i).astype("int64") + tirx.const(self.tiny, "int64"),
            ),
            name=name,
        )


@dataclass(frozen=True)
class Scaled:
    """``numerator * factor`` with ``fraction`` binary places, saturated at plus and minus limit."""

    fraction: int
    limit: int

    header = HEADER

    def result(self, numerator: Node, factor: Node) -> tuple[Shape, str]:
        """The broadcast shape."""
        return tuple(np.broadcast_shapes(numerator.shape, factor.shape)), "int32"

    def interval(self, numerator: Node, factor: Node) -> Interval:
        """Up to the limit; not negative if neither operand is."""
        positive = min(numerator.interval[0], factor.interval[0]) >= 0
        return 0 if positive else -self.limit, self.limit

    def reference(self, numerator: Array, factor: Array) -> Array:
        """deploy.arithmetic's definition."""
        ratio = scaled(numerator, factor, fraction=self.fraction, limit=self.limit)
        return ratio.astype(np.int32)

    def compute(self, name: str, numerator: Any, factor: Any) -> Any:
        """One 64-bit multiplication and a shift, in ``entrain_scaled`` of the C kernels."""
        from tvm import te, tirx

        shapes = static_shape(numerator), static_shape(factor)
        return te.compute(
            np.broadcast_shapes(*shapes),
            lambda *i: tirx.call_pure_extern(
                "int32",
                "entrain_scaled",
                element(numerator, shapes[0], i).astype("int32"),
                element(factor, shapes[1], i),
                tirx.const(self.fraction, "int32"),
                tirx.const(self.limit, "int32"),
            ),
            name=name,
        )
