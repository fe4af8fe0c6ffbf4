"""Layers that rescale one integer sum: convolutions, pools and products with weights.

Whatever moves stand between the sum and the result, a kernel needs to know where in the result
each element of the sum goes, and which bias and multiplier belong to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrain.deploy.lowering.graph import Array, Layer, Node
from entrain.deploy.lowering.kernels.c_source import structure
from entrain.deploy.lowering.operators.elementwise import ADD_INTEGERS
from entrain.deploy.lowering.operators.leaves import Constant
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.views import View, result_places

LEAST_SHIFT = 33  # from here on only the high word of a product matters
LARGEST_SUM = 2**31 - 1
UNSIGNED_OFFSET = 128  # what kernels of products take off unsigned bytes


@dataclass(frozen=True)
class RescaledSum:
    """``result = clip(zero_point + round((sum + bias) * multipliers / 2**shift))``.

    Attributes:
        requantize: shift, zero point and bounds.
        sum: the node that sums up.
        places: where in the result, row-major, each element of the sum goes; of the sum's shape.
        bias: integers added, of the sum's shape.
        multipliers: of the sum's shape.
        rise: bits by which the sums may rise, to make a shift of ``LEAST_SHIFT``.
    """

    requantize: Requantize
    sum: Node
    places: Array
    bias: Array
    multipliers: Array
    rise: int

    @property
    def shift(self) -> int:
        """What the risen sums are shifted by after the multiplication."""
        return self.requantize.shift + self.rise

    @property
    def for_each_channel(self) -> bool:
        """Whether multipliers differ."""
        return np.unique(self.multipliers).size > 1

    def rescale_text(self, shift: int) -> str:
        """``struct entrain_rescale``, for sums that rise first (``self.shift``) or do not."""
        to = self.requantize
        return structure(
            {
                "shift": shift,
                "zero_point": to.zero_point,
                "low": to.low,
                "high": to.high,
                "is_unsigned": to.dtype == "uint8",
                "for_each_channel": self.for_each_channel,
            }
        )


def rescaled_sum(layer: Layer) -> RescaledSum | None:
    """The layer as one sum, each element of which is written once; None if it is something else."""
    requantize = layer.expression.operator
    if not isinstance(requantize, Requantize) or requantize.terms != 1:
        return None
    moved, multipliers, rest = layer.expression.operands
    peak = max(abs(int(end)) for end in moved.interval)
    source, shown = result_places(moved)
    added = np.zeros(shown.shape, np.int64)
    if source.operator is ADD_INTEGERS and isinstance(source.operands[1].operator, Constant):
        below, summand = source.operands
        if below.shape != source.shape:
            return None
        added = np.broadcast_to(summand.operator.reference(), source.shape).reshape(-1)[shown]
        source, places = result_places(below)
        shown = places.reshape(-1)[shown]
    if shown.shape != requantize.shape or rest.operator.reference().any():
        return None
    count = int(np.prod(source.shape))
    if shown.size != count or np.unique(shown).size != count:
        return None
    rise = max(0, LEAST_SHIFT - requantize.shift)
    if peak << rise > LARGEST_SUM:
        return None

    def of_sum(array: Array) -> Array:
        """An array that broadcasts to the result, as one of the sum's shape."""
        spread = np.empty(count, np.int64)
        spread[shown.reshape(-1)] = np.broadcast_to(array, shown.shape).reshape(-1)
        return spread.reshape(source.shape)

    return RescaledSum(
        requantize,
        source,
        of_sum(np.arange(count).reshape(shown.shape)),
        of_sum(added),
        of_sum(multipliers.operator.reference()),
        rise,
    )


def offset_of(view: View) -> int:
    """What has yet to be taken off each byte of a view that a kernel of products reads."""
    return view.zero_point - (UNSIGNED_OFFSET if view.value.dtype == "uint8" else 0)


def along(axis: int, array: Array) -> Array | None:
    """The array as numbers along one axis, if it is constant along all others."""
    others = tuple(i for i in range(array.ndim) if i != axis)
    first: Array = array.min(axis=others, keepdims=True)
    return first.reshape(-1) if np.array_equal(np.broadcast_to(first, array.shape), array) else None
