"""Integer operators on one element at a time: sums, differences and products in int32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import element, static_shape


@dataclass(frozen=True)
class Elementwise:
    """An int32 function of one element of each operand, with numpy's broadcasting.

    ``numpy_function`` and ``tir_function`` must agree for operands of which no result leaves 32
    bits, and be monotonic in each operand.
    """

    numpy_function: Callable[..., Array]
    tir_function: Callable[..., Any]

    def result(self, *operands: Node) -> tuple[Shape, str]:
        """The broadcast shape."""
        return tuple(np.broadcast_shapes(*(node.shape for node in operands))), "int32"

    def interval(self, *operands: Node) -> Interval:
        """By the corners."""
        corners = product(*(operand.interval for operand in operands))
        values = [int(self.numpy_function(*map(np.int64, corner))) for corner in corners]
        return min(values), max(values)

    def reference(self, *operands: Array) -> Array:
        """Element by element."""
        return self.numpy_function(*(operand.astype(np.int32) for operand in operands))

    def compute(self, name: str, *operands: Any) -> Any:
        """Element by element; inlined by the schedule."""
        from tvm import te

        shapes = [static_shape(operand) for operand in operands]
        return te.compute(
            np.broadcast_shapes(*shapes),
            lambda *i: self.tir_function(
                *(element(t, s, i).astype("int32") for t, s in zip(operands, shapes, strict=True))
            ),
            name=name,
        )


ADD_INTEGERS = Elementwise(np.add, lambda a, b: a + b)
SUBTRACT_INTEGERS = Elementwise(np.subtract, lambda a, b: a - b)
MULTIPLY_INTEGERS = Elementwise(np.multiply, lambda a, b: a * b)
