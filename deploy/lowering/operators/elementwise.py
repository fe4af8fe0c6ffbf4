"""Operators on one element at a time: integer offsets and IEEE single-precision arithmetic.

Single precision is exact to the bit on every IEEE machine as long as no compiler fuses a multiply
and an add (-ffp-contract=off) and every step is written out, as here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import special

from entrain.deploy.lowering.graph import UNBOUNDED, Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import element, static_shape


@dataclass(frozen=True)
class Elementwise:
    """A function of one element of each operand, with numpy's broadcasting.

    ``numpy_function`` and ``tir_function`` must agree to the bit for operands of ``dtype``. A
    function without ``tir_function`` cannot run on the device; it is tabulated when lowering
    (:mod:`entrain.deploy.lowering.tabulation`).
    """

    dtype: str
    numpy_function: Callable[..., Array]
    tir_function: Callable[..., Any] | None

    def result(self, *operands: Node) -> tuple[Shape, str]:
        """The broadcast shape."""
        return tuple(np.broadcast_shapes(*(node.shape for node in operands))), self.dtype

    def interval(self, *operands: Node) -> Interval:
        """By the corners; integer functions are monotonic in each operand."""
        if self.dtype == "float32":
            return UNBOUNDED
        corners = product(*(operand.interval for operand in operands))
        values = [int(self.numpy_function(*map(np.int64, corner))) for corner in corners]
        return min(values), max(values)

    def reference(self, *operands: Array) -> Array:
        """Element by element; divisions by zero give infinities, as IEEE 754 has it."""
        with np.errstate(all="ignore"):
            return self.numpy_function(*(operand.astype(self.dtype) for operand in operands))

    def compute(self, name: str, *operands: Any) -> Any:
        """Element by element; inlined by the schedule."""
        from tvm import te

        if self.tir_function is None:
            raise LookupError(f"{name} should have been tabulated")
        function = self.tir_function
        shapes = [static_shape(operand) for operand in operands]
        return te.compute(
            np.broadcast_shapes(*shapes),
            lambda *i: function(
                *(
                    element(t, s, i).astype(self.dtype)
                    for t, s in zip(operands, shapes, strict=True)
                )
            ),
            name=name,
        )


def _larger_array(a: Array, b: Array) -> Array:
    """Of a NaN and b it is b, as in the C; numpy's own maximum would give the NaN."""
    larger: Array = np.where(a > b, a, b)
    return larger


def _smaller_array(a: Array, b: Array) -> Array:
    smaller: Array = np.where(a < b, a, b)
    return smaller


def _larger(a: Any, b: Any) -> Any:
    from tvm import tirx

    return tirx.max(a, b)


def _smaller(a: Any, b: Any) -> Any:
    from tvm import tirx

    return tirx.min(a, b)


def _square_root(x: Any) -> Any:
    from tvm import tirx

    return tirx.call_pure_extern("float32", "entrain_square_root", x)


ADD_INTEGERS = Elementwise("int32", np.add, lambda a, b: a + b)
SUBTRACT_INTEGERS = Elementwise("int32", np.subtract, lambda a, b: a - b)
ADD = Elementwise("float32", np.add, lambda a, b: a + b)
SUBTRACT = Elementwise("float32", np.subtract, lambda a, b: a - b)
MULTIPLY = Elementwise("float32", np.multiply, lambda a, b: a * b)
DIVIDE = Elementwise("float32", np.divide, lambda a, b: a / b)
MAXIMUM = Elementwise("float32", _larger_array, _larger)
MINIMUM = Elementwise("float32", _smaller_array, _smaller)
SQUARE_ROOT = Elementwise("float32", np.sqrt, _square_root)
TO_REAL = Elementwise("float32", lambda a: a, lambda a: a)

# tabulated
EXPONENTIAL = Elementwise("float32", np.exp, None)
LOGARITHM = Elementwise("float32", np.log, None)
SOFTPLUS = Elementwise("float32", lambda x: np.logaddexp(np.float32(0), x), None)
SIGMOID = Elementwise("float32", special.expit, None)
TANH = Elementwise("float32", np.tanh, None)
ERROR_FUNCTION = Elementwise("float32", special.erf, None)
