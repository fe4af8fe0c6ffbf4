"""Products of integers wider than a byte: in 64 bits, then as many bits as are kept."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.broadcasting import element, static_shape
from entrain.deploy.lowering.operators.intervals import sum_of_products

HEADER = "entrain_wide.h"


@dataclass(frozen=True)
class WideMatMul:
    """``c[..., m, n] = sum_k a[..., m, k] * b[..., n, k]`` in int64, of operands up to int32."""

    header = HEADER

    def result(self, a: Node, b: Node) -> tuple[Shape, str]:
        """Leading axes broadcast, then M and N."""
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return (*lead, a.shape[-2], b.shape[-2]), "int64"

    def interval(self, a: Node, b: Node) -> Interval:
        """As often the extreme products as there are summands."""
        return sum_of_products(a, b, a.shape[-1])

    def macs(self, a: Node, b: Node) -> int:
        """Multiply-adds."""
        shape, _ = self.result(a, b)
        return prod(shape) * a.shape[-1]

    def reference(self, a: Array, b: Array) -> Array:
        """The same in numpy."""
        product: Array = a.astype(np.int64) @ np.swapaxes(b.astype(np.int64), -1, -2)
        return product

    def compute(self, name: str, a: Any, b: Any) -> Any:
        """A reduction over the last axes."""
        from tvm import te, tirx

        shape_a, shape_b = static_shape(a), static_shape(b)
        lead = np.broadcast_shapes(shape_a[:-2], shape_b[:-2])
        k = te.reduce_axis((0, shape_a[-1]), name=f"{name}_k")

        def product(*i: Any) -> Any:
            *outer, m, n = i
            left = element(a, shape_a, (*outer, m, k)).astype("int32")
            right = element(b, shape_b, (*outer, n, k)).astype("int32")
            term = tirx.call_pure_extern("int64", "entrain_product", left, right)
            return te.sum(term, axis=k)

        return te.compute((*lead, shape_a[-2], shape_b[-2]), product, name=name)


@dataclass(frozen=True)
class WideProduct:
    """``a * b`` in int64, element by element, of operands up to int32."""

    header = HEADER

    def result(self, a: Node, b: Node) -> tuple[Shape, str]:
        """The broadcast shape."""
        return tuple(np.broadcast_shapes(a.shape, b.shape)), "int64"

    def interval(self, a: Node, b: Node) -> Interval:
        """By the corners; a square is not negative."""
        corners = [int(x) * int(y) for x in a.interval for y in b.interval]
        return max(min(corners), 0) if a is b else min(corners), max(corners)

    def reference(self, a: Array, b: Array) -> Array:
        """The same in numpy."""
        product: Array = a.astype(np.int64) * b.astype(np.int64)
        return product

    def compute(self, name: str, a: Any, b: Any) -> Any:
        """``entrain_product`` of the C kernels; inlined by the schedule."""
        from tvm import te, tirx

        shapes = static_shape(a), static_shape(b)

        def product(*i: Any) -> Any:
            left = element(a, shapes[0], i).astype("int32")
            right = element(b, shapes[1], i).astype("int32")
            return tirx.call_pure_extern("int64", "entrain_product", left, right)

        return te.compute(np.broadcast_shapes(*shapes), product, name=name)


def narrowed_long(node: Node, bits: int) -> tuple[Node, int]:
    """The int64 node in int32 with so many bits, and how many were rounded off; one at least."""
    widest = max(abs(int(end)) for end in node.interval).bit_length()
    surplus = max(widest - bits, 1)
    return apply(NarrowLong(surplus), node), surplus


@dataclass(frozen=True)
class NarrowLong:
    """``(x + 2**(shift-1)) >> shift`` of an int64 that fits int32 then. shift >= 1."""

    shift: int

    header = HEADER

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
        narrowed: Array = (operand + half) >> np.int64(self.shift)
        return narrowed.astype(np.int32)

    def compute(self, name: str, operand: Any) -> Any:
        """``entrain_narrow`` of the C kernels."""
        from tvm import te, tirx

        shift = tirx.const(self.shift, "int32")
        return te.compute(
            static_shape(operand),
            lambda *i: tirx.call_pure_extern("int32", "entrain_narrow", operand(*i), shift),
            name=name,
        )
