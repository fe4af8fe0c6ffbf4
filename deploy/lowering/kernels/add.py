"""Sums of stored bytes, element by element, as calls of ``entrain_add``.

Such a layer is ``clip(zero_point + round(sum_k multiplier_k * operand_k + bias))`` of values that
lie in memory in the order of the result. Its multipliers are so small that the total fits 32 bits
(:func:`entrain.deploy.arithmetic.narrow_fixed_point`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.lowering.graph import BYTES, Array, Layer, Node, Shape
from entrain.deploy.lowering.kernels.bytes_in_order import bytes_in_order
from entrain.deploy.lowering.kernels.c_source import in_order, source_of, structure
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.views import View

MOST_ADDENDS = 8
LARGEST_SHIFT = 24  # brings a byte to the top of 32 bits


@dataclass(frozen=True)
class Addend:
    """A stored value in the order of the result, and what its bytes are multiplied by."""

    view: View
    multiplier: int

    @property
    def interval(self) -> tuple[int, int]:
        """The smallest and the largest product of a stored byte."""
        ends = [self.multiplier * end for end in integer_range(self.view.value.dtype)]
        return min(ends), max(ends)

    def c_text(self) -> str:
        """``struct entrain_addend``."""
        is_unsigned = self.view.value.dtype == "uint8"
        return structure({"multiplier": self.multiplier, "is_unsigned": is_unsigned})


def match_add(layer: Layer) -> Kernel | None:
    """The kernel of a layer that adds bytes and constants; None if a total may leave 32 bits."""
    to = layer.expression.operator
    if not isinstance(to, Requantize) or to.dtype not in BYTES:
        return None
    if to.terms > MOST_ADDENDS or to.shift > LARGEST_SHIFT:
        return None
    *factors, bias = layer.expression.operands
    pairs = zip(factors[: to.terms], factors[to.terms :], strict=True)
    found = [_addend(node, multipliers, to.shape) for node, multipliers in pairs]
    addends = [addend for addend in found if addend is not None]
    if len(addends) < len(found):
        return None
    constants = _constants(to, addends, bias.operator.reference())
    return _kernel(layer, to, addends, constants) if _fits(addends, constants) else None


def _addend(node: Node, multipliers: Node, shape: Shape) -> Addend | None:
    """A term as stored bytes in the order of the result, with one multiplier for all."""
    view, factors = bytes_in_order(node), np.unique(multipliers.operator.reference())
    if view is None or factors.size > 1 or prod(view.shape) != prod(shape):
        return None
    return Addend(view, int(factors[0]))


def _constants(to: Requantize, addends: list[Addend], bias: Array) -> Array:
    """All that is added to the products of stored bytes, of the bias's shape, int64."""
    fine = bias.astype(np.int64) << np.int64(to.bias_shift)
    zero_points = sum(addend.multiplier * addend.view.zero_point for addend in addends)
    return fine + (to.zero_point << to.shift) + (1 << (to.shift - 1)) - zero_points


def _fits(addends: list[Addend], constants: Array) -> bool:
    """Whether no product and no total of any bytes leaves 32 bits."""
    low, high = integer_range("int32")
    least = int(constants.min()) + sum(addend.interval[0] for addend in addends)
    most = int(constants.max()) + sum(addend.interval[1] for addend in addends)
    ends = [end for addend in addends for end in addend.interval]
    return low <= min(least, *ends) and max(most, *ends) <= high


def _kernel(layer: Layer, to: Requantize, addends: list[Addend], constants: Array) -> Kernel:
    row = _row(constants, to.shape)
    fields = {
        "rows": prod(to.shape) // row.size,
        "columns": row.size,
        "addends": len(addends),
        "addend": in_order(*(addend.c_text() for addend in addends)),
        "constant": int(constants.flat[0]),
        "shift": to.shift,
        "low": to.low,
        "high": to.high,
        "is_unsigned": to.dtype == "uint8",
    }
    each = constants.size > 1
    sources = in_order(*(source_of(addend.view) for addend in addends))
    call = (
        f"static const struct entrain_add sum = {structure(fields, wide=True)};\n"
        f"const void *const addends[] = {sources};\n"
        f"entrain_add(addends, {'constants' if each else 'NULL'}, output, &sum);"
    )
    arrays = (("constants", row.astype(np.int32)),) if each else ()
    # a byte is read for the result of its own place or of an earlier one
    overwrites = tuple(value.name for value in layer.inputs)
    return Kernel(layer, "entrain_add.h", call, arrays, overwrites=overwrites)


def _row(constants: Array, shape: Shape) -> Array:
    """The constants of as many neighbours as it takes until they repeat; all of them if equal."""
    aligned = constants.reshape((1,) * (len(shape) - constants.ndim) + constants.shape)
    varying = [axis for axis, extent in enumerate(aligned.shape) if extent > 1]
    first = varying[0] if varying else 0
    return np.broadcast_to(aligned, (*aligned.shape[:first], *shape[first:])).reshape(-1)
