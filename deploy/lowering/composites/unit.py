"""Vectors drawn to length 1: what settles an oscillator, and what normalizes a layer."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2, prod

import numpy as np

from entrain.deploy.arithmetic.ratios import FACTOR_ERROR
from entrain.deploy.lowering.graph import Interval, Shape
from entrain.deploy.lowering.integers import ROUNDED_BITS, integers, width
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import MULTIPLY_INTEGERS
from entrain.deploy.lowering.operators.ratio import RootFactor, Scaled
from entrain.deploy.lowering.operators.reduction import SumOfSquares
from entrain.deploy.lowering.quantity import Affine, Reals, Term, expanded

FRACTION = 15  # binary places of a component; a factor knows no more
SQUARES_BITS = 62  # of a vector's squares together
LARGEST_TINY = 2.0**61
NO_TINY = 2.0**-11  # of the square of one step: below it nothing changes
FINER = 5  # bits: rounding ``tiny`` to 4**-5 of a square changes no length by more than 2**-12


@dataclass(frozen=True)
class Unit:
    """``v / sqrt(sum v^2 + tiny)`` over ``axes``; a vector of zeros stays one.

    With the mean taken off v, times sqrt(n), it is the normalization of a layer: ``(v - mean) /
    sqrt(variance + tiny / n)``. Squares are summed exactly, in 64 bits.
    """

    vector: Affine
    axes: tuple[int, ...]
    tiny: float

    pointwise = False

    @property
    def shape(self) -> Shape:
        """That of the operand."""
        return self.vector.shape

    @property
    def operands(self) -> tuple[Affine, ...]:
        """The one."""
        return (self.vector,)

    @property
    def interval(self) -> Interval:
        """A component of a unit vector."""
        return -1.0, 1.0

    def of(self, vector: Affine) -> Unit:
        """The same of another operand of the same shape."""
        return Unit(vector, self.axes, self.tiny)

    def evaluate(self, vector: Reals) -> Reals:
        """The vectors of length 1."""
        whole = np.broadcast_to(vector, self.shape)
        squared = (whole * whole).sum(axis=self.axes, keepdims=True) + self.tiny
        units: Reals = np.divide(
            whole, np.sqrt(squared), out=np.zeros(self.shape), where=squared > 0.0
        )
        return units

    def integers(self, _bits: int, _reach: float) -> Term:
        """15 binary places of each component."""
        vector = self._exact()
        tiny = round(self.tiny / float(vector.scale) ** 2)
        squares = apply(SumOfSquares(self.axes), vector.node)
        factor = apply(RootFactor(tiny), squares)
        limit = ceil(2.0**FRACTION * (1.0 + FACTOR_ERROR)) + 1
        node = apply(Scaled(FRACTION, limit), vector.node, factor)
        return Term(node, np.asarray(2.0**-FRACTION))

    def _exact(self) -> Term:
        """The vector in bits of which the squares fit, with steps in which ``tiny`` is exact."""
        count = prod(self.shape[axis] for axis in self.axes)
        bits = min(ROUNDED_BITS, (SQUARES_BITS - ceil(log2(count))) // 2)
        term = integers(self.vector, bits)
        while self.tiny / float(term.scale) ** 2 > LARGEST_TINY:
            bits = width(term.node) - 2
            term = integers(self.vector, bits)
        node = expanded(term.node, self.shape)
        relative = self.tiny / float(term.scale) ** 2
        finer = min(FINER, bits - width(node))
        if relative < NO_TINY or relative > 4.0**FINER or finer < 1:
            return Term(node, term.scale)
        finer_node = apply(MULTIPLY_INTEGERS, node, constant(np.asarray(1 << finer, np.int32)))
        return Term(finer_node, term.scale / 2.0**finer)
