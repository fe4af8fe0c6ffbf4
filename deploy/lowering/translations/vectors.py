"""Divisions by a vector's own length, however the length was written."""

from __future__ import annotations

from math import inf, sqrt

from entrain.deploy.lowering.composing import whole
from entrain.deploy.lowering.composites.product import Product
from entrain.deploy.lowering.composites.ratio import Root
from entrain.deploy.lowering.composites.total import Total, kept
from entrain.deploy.lowering.composites.unit import Unit
from entrain.deploy.lowering.integers import interval_of
from entrain.deploy.lowering.quantity import Affine, Part, alike, sole_part

SMALL_FLOOR = 1e-6  # of the largest component: a floor that only keeps from dividing by 0


def radicand_below(quantity: Affine) -> tuple[Affine, float] | None:
    """What ``quantity = scale * sqrt(radicand)`` is the root of, and the scale; None if it is not.

    A lower bound of the root is left to the caller.
    """
    if len(quantity.parts) != 1 or quantity.terms or quantity.constant.any():
        return None
    (part,) = quantity.parts
    if not isinstance(part.composite, Root) or part.scale.size != 1 or not part.scale.item() > 0.0:
        return None
    return part.composite.radicand, float(part.scale.item())


def over_length(vector: Affine, length: Affine) -> tuple[Affine, float] | None:
    """``vector / length`` as a vector of length 1 and a factor, if the length is the vector's own.

    The length is ``scale * sqrt(k * sum vector^2 + tiny)``, perhaps with a small positive floor,
    as ``torch.nn.functional.normalize`` writes it.
    """
    below = radicand_below(length)
    if below is None or length.high != inf:
        return None
    radicand, scale = below
    squares = _sum_of_squares(radicand)
    if squares is None or not alike(squares[0], vector):
        return None
    _, total, k = squares
    floor = max(length.low, 0.0) / scale
    if floor > SMALL_FLOOR * max(map(abs, interval_of(vector))):
        return None
    tiny = (float(radicand.constant.item()) + floor**2) / k
    return whole(Unit(vector, total.axes, tiny)), 1.0 / (scale * sqrt(k))


def _sum_of_squares(radicand: Affine) -> tuple[Affine, Total, float] | None:
    """v, its sum of squares and k, if the radicand is ``k * sum v^2 + tiny``."""
    if len(radicand.parts) != 1 or radicand.terms or radicand.clipped:
        return None
    (part,) = radicand.parts
    square = _square_within(part)
    if square is None or radicand.constant.size != 1 or radicand.constant.item() < 0.0:
        return None
    return square


def _square_within(part: Part) -> tuple[Affine, Total, float] | None:
    total = part.composite
    if not isinstance(total, Total) or part.scale.size != 1:
        return None
    inner = sole_part(total.operand)
    if inner is None or not isinstance(inner.composite, Product) or not inner.composite.is_square:
        return None
    if total.shape != kept(total.operand.shape, total.axes):
        return None
    k = float(part.scale.item() * inner.scale.item())
    return (inner.composite.left, total, k) if k > 0.0 else None
