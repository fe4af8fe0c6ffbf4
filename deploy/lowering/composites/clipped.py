"""A quantity within bounds, as a summand of another one."""

from __future__ import annotations

from dataclasses import dataclass

from entrain.deploy.lowering.graph import Interval, Shape
from entrain.deploy.lowering.integers import integers, interval_of
from entrain.deploy.lowering.quantity import Affine, Reals, Term


@dataclass(frozen=True)
class Clipped:
    """``operand``, whose bounds are its own."""

    operand: Affine

    pointwise = True

    @property
    def shape(self) -> Shape:
        """That of the operand."""
        return self.operand.shape

    @property
    def operands(self) -> tuple[Affine, ...]:
        """The one."""
        return (self.operand,)

    @property
    def interval(self) -> Interval:
        """That of the operand."""
        return interval_of(self.operand)

    def of(self, operand: Affine) -> Clipped:
        """The same of another operand."""
        return Clipped(operand)

    def evaluate(self, operand: Reals) -> Reals:
        """The operand's value is clipped already."""
        return operand

    def integers(self, bits: int, reach: float) -> Term:
        """The operand's, requantized to its bounds."""
        return integers(self.operand, bits, reach)
