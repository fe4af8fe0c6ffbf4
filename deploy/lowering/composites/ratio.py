"""Quotients: by a tensor, and by the square root of a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, isfinite, log2, sqrt

import numpy as np

from entrain.deploy.arithmetic.ratios import FACTOR_ERROR, LARGEST_FRACTION, LARGEST_LIMIT
from entrain.deploy.lowering.composites.total import Total
from entrain.deploy.lowering.graph import Interval, Node, Shape
from entrain.deploy.lowering.integers import (
    MOST_BITS,
    PART_BITS,
    integers,
    interval_of,
    unbounded,
)
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.ratio import ReciprocalFactor, RootFactor, Scaled
from entrain.deploy.lowering.quantity import Affine, Reals, Term, alike, sole_part

SLIGHTLY = 2.0**-10  # negative: what rounding may make of something that is not


def scaled_by(numerator: Node, factor: Node, step: float, bound: float, bits: int) -> Term:
    """``step * numerator * factor`` for results up to ``bound``, beyond which they saturate.

    Raises:
        UnsupportedOperator: the bound is infinite.
    """
    if not isfinite(bound):
        raise unbounded()
    places = min(bits, PART_BITS) - ceil(log2(max(bound / step, 2.0**-LARGEST_FRACTION)))
    fraction = min(max(places, 0), LARGEST_FRACTION)
    limit = ceil(bound / step * 2.0**fraction * (1.0 + FACTOR_ERROR)) + 1
    node = apply(Scaled(fraction, min(limit, LARGEST_LIMIT)), numerator, factor)
    return Term(node, np.asarray(step / 2.0**fraction))


@dataclass(frozen=True)
class Ratio:
    """``numerator / denominator``; saturated where the denominator is 0, and 0/0 is 0."""

    numerator: Affine
    denominator: Affine

    pointwise = True

    @property
    def shape(self) -> Shape:
        """The broadcast shape."""
        return tuple(np.broadcast_shapes(self.numerator.shape, self.denominator.shape))

    @property
    def operands(self) -> tuple[Affine, ...]:
        """Both."""
        return self.numerator, self.denominator

    @property
    def interval(self) -> Interval:
        """Bounded if the denominator keeps away from 0, or if it is the numerator's own sum."""
        above, below = interval_of(self.numerator), interval_of(self.denominator)
        if above[0] >= -SLIGHTLY * above[1] and self._is_share:
            return (-1.0 if above[0] < 0.0 else 0.0), 1.0
        if below[0] > 0.0 or below[1] < 0.0:
            corners = [a / b for a in above for b in below]
            return min(corners), max(corners)
        return 0.0 if above[0] >= 0.0 and below[0] >= 0.0 else -inf, inf

    @property
    def _is_share(self) -> bool:
        part = sole_part(self.denominator)
        return (
            part is not None
            and isinstance(part.composite, Total)
            and part.scale.item() == 1.0
            and alike(part.composite.operand, self.numerator)
        )

    def of(self, numerator: Affine, denominator: Affine) -> Ratio:
        """The same of other operands."""
        return Ratio(numerator, denominator)

    def evaluate(self, numerator: Reals, denominator: Reals) -> Reals:
        """The quotient; 0/0 is 0."""
        with np.errstate(all="ignore"):
            quotient = numerator / denominator
        return np.where(np.isnan(quotient), 0.0, quotient)

    def integers(self, bits: int, reach: float) -> Term:
        """A factor for each denominator, a product for each element."""
        above, below = integers(self.numerator, MOST_BITS), integers(self.denominator, MOST_BITS)
        factor = apply(ReciprocalFactor(), below.node)
        step = float(above.scale / below.scale)
        bound = min(reach, max(map(abs, self.interval)))
        return scaled_by(above.node, factor, step, bound, bits)


@dataclass(frozen=True)
class OverRoot:
    """``numerator / sqrt(radicand)``; 0 where the radicand is negative."""

    numerator: Affine
    radicand: Affine

    pointwise = True

    @property
    def shape(self) -> Shape:
        """The broadcast shape."""
        return tuple(np.broadcast_shapes(self.numerator.shape, self.radicand.shape))

    @property
    def operands(self) -> tuple[Affine, ...]:
        """Both."""
        return self.numerator, self.radicand

    @property
    def interval(self) -> Interval:
        """Bounded if the radicand keeps away from 0."""
        above, below = interval_of(self.numerator), interval_of(self.radicand)
        if below[0] <= 0.0:
            return 0.0 if above[0] >= 0.0 else -inf, inf
        corners = [a / sqrt(b) for a in above for b in below]
        return min(corners), max(corners)

    def of(self, numerator: Affine, radicand: Affine) -> OverRoot:
        """The same of other operands."""
        return OverRoot(numerator, radicand)

    def evaluate(self, numerator: Reals, radicand: Reals) -> Reals:
        """The quotient."""
        with np.errstate(all="ignore"):
            quotient = numerator / np.sqrt(radicand)
        return np.where(np.isnan(quotient), 0.0, quotient)

    def integers(self, bits: int, reach: float) -> Term:
        """A factor for each radicand, a product for each element."""
        above, below = integers(self.numerator, MOST_BITS), integers(self.radicand, MOST_BITS)
        factor = apply(RootFactor(), below.node)
        step = float(above.scale / np.sqrt(below.scale))
        bound = min(reach, max(map(abs, self.interval)))
        return scaled_by(above.node, factor, step, bound, bits)


@dataclass(frozen=True)
class Root:
    """``sqrt(radicand)``, which is ``radicand / sqrt(radicand)``; 0 where it is negative."""

    radicand: Affine

    pointwise = True

    @property
    def shape(self) -> Shape:
        """That of the operand."""
        return self.radicand.shape

    @property
    def operands(self) -> tuple[Affine, ...]:
        """The one."""
        return (self.radicand,)

    @property
    def interval(self) -> Interval:
        """The roots of the radicand's ends."""
        low, high = interval_of(self.radicand)
        return sqrt(max(low, 0.0)), sqrt(max(high, 0.0))

    def of(self, radicand: Affine) -> Root:
        """The same of another operand."""
        return Root(radicand)

    def evaluate(self, radicand: Reals) -> Reals:
        """The root."""
        root: Reals = np.sqrt(np.maximum(radicand, 0.0))
        return root

    def integers(self, bits: int, reach: float) -> Term:
        """The radicand times its inverse root."""
        below = integers(self.radicand, MOST_BITS)
        factor = apply(RootFactor(), below.node)
        bound = min(reach, max(self.interval[1], float(np.sqrt(below.scale))))
        return scaled_by(below.node, factor, float(np.sqrt(below.scale)), bound, bits)
