"""Softmax: each element's exponential as a share of the sum along an axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from entrain.deploy.lowering.composing import whole
from entrain.deploy.lowering.composites.function import SHORT_BITS, Function
from entrain.deploy.lowering.composites.ratio import Ratio
from entrain.deploy.lowering.composites.total import BelowPeak, Highest, Total, kept
from entrain.deploy.lowering.integers import PART_BITS, integers, interval_of
from entrain.deploy.lowering.quantity import Affine, alike, sole_part

NO_WEIGHT = 24.0  # exp(-24) of the largest is nothing in any number of bits here


def softmax_of(quantity: Affine, axes: tuple[int, ...]) -> Affine:
    """``exp(x - peak) / sum exp(x - peak)`` over the axes."""
    exponents, total = exponents_of(below_peak(quantity, axes), axes)
    return whole(Ratio(exponents, total))


def below_peak(quantity: Affine, axes: tuple[int, ...]) -> Affine:
    """``x - peak``, x as one integer tensor, of which the peak is then taken."""
    term = integers(_unmasked(quantity), PART_BITS)
    return whole(BelowPeak(Affine((term,), np.zeros(()), quantity.shape), axes))


def exponents_of(below: Affine, axes: tuple[int, ...]) -> tuple[Affine, Affine]:
    """``exp(below)``, in the 15 bits that the largest of each sum makes good use of; the sum."""
    exponents = whole(Function(below, np.exp, SHORT_BITS))
    return exponents, whole(Total(exponents, axes, kept(below.shape, axes)))


def _unmasked(quantity: Affine) -> Affine:
    """Without the depths of a mask: what is far below everything else has no weight anyway."""
    if quantity.constant.size == 1:
        return quantity
    low, high = interval_of(replace(quantity, constant=np.zeros(())))
    floor = float(quantity.constant.max()) - (high - low) - NO_WEIGHT
    return replace(quantity, constant=np.maximum(quantity.constant, floor))


def written_out(above: Affine, below: Affine) -> tuple[Affine, float] | None:
    """``exp(x) / sum exp(x)`` as a softmax and a factor; None if it is something else.

    A peak that was taken off x already is left out: it changes nothing but the range.
    """
    share, total = sole_part(above), sole_part(below)
    if share is None or total is None or not isinstance(total.composite, Total):
        return None
    inner = sole_part(total.composite.operand)
    if inner is None or not isinstance(share.composite, Function):
        return None
    axes = total.composite.axes
    summed = alike(inner.composite, share.composite) and share.composite.formula is np.exp
    if not summed or total.composite.shape != kept(above.shape, axes):
        return None
    factor = float(share.scale.item() / (total.scale.item() * inner.scale.item()))
    return softmax_of(_without_peak(share.composite.operand, axes), axes), factor


def _without_peak(quantity: Affine, axes: tuple[int, ...]) -> Affine:
    if quantity.clipped:
        return quantity
    parts = tuple(
        part
        for part in quantity.parts
        if not (isinstance(part.composite, Highest) and part.composite.axes == axes)
    )
    return replace(quantity, parts=parts)
