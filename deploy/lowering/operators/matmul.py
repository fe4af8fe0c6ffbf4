"""Integer matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import element, static_shape
from entrain.deploy.lowering.operators.intervals import sum_of_products


@dataclass(frozen=True)
class MatMul:
    """``c[..., m, n] = sum_k a[..., m, k] * b[..., n, k]`` in int32.

    Both operands are read along their last axis, the order in which weights lie in flash. Leading
    axes broadcast.
    """

    def result(self, a: Node, b: Node) -> tuple[Shape, str]:
        """Leading axes broadcast, then M and N."""
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return (*lead, a.shape[-2], b.shape[-2]), "int32"

    def interval(self, a: Node, b: Node) -> Interval:
        """As often the extreme products as there are summands."""
        return sum_of_products(a, b, a.shape[-1])

    def macs(self, a: Node, b: Node) -> int:
        """Multiply-adds."""
        shape, _ = self.result(a, b)
        return prod(shape) * a.shape[-1]

    def reference(self, a: Array, b: Array) -> Array:
        """Exact: float64 holds every integer that can occur, and BLAS is quick."""
        product = a.astype(np.float64) @ np.swapaxes(b.astype(np.float64), -1, -2)
        return product.astype(np.int32)

    def compute(self, name: str, a: Any, b: Any) -> Any:
        """A reduction over the last axes."""
        from tvm import te

        shape_a, shape_b = static_shape(a), static_shape(b)
        lead = np.broadcast_shapes(shape_a[:-2], shape_b[:-2])
        k = te.reduce_axis((0, shape_a[-1]), name=f"{name}_k")

        def product(*i: Any) -> Any:
            *outer, m, n = i
            left = element(a, shape_a, (*outer, m, k))
            right = element(b, shape_b, (*outer, n, k))
            return te.sum(left.astype("int32") * right.astype("int32"), axis=k)

        return te.compute((*lead, shape_a[-2], shape_b[-2]), product, name=name)
