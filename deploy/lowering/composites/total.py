"""Sums and maxima over axes of what is no integer tensor yet, and the distance from a maximum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log2, prod

import numpy as np

from entrain.deploy.lowering.graph import Interval, Node, Shape
from entrain.deploy.lowering.integers import MOST_BITS, integers, interval_of
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.elementwise import SUBTRACT_INTEGERS
from entrain.deploy.lowering.operators.layout import Reshape
from entrain.deploy.lowering.operators.reduction import Peak, Sum
from entrain.deploy.lowering.quantity import Affine, Reals, Term, expanded


def kept(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """The shape with extent 1 along some axes."""
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))


def reshaped(node: Node, shape: Shape) -> Node:
    """The node under another shape."""
    return node if node.shape == shape else apply(Reshape(shape), node)


@dataclass(frozen=True)
class Total:
    """``sum operand`` over ``axes``."""

    operand: Affine
    axes: tuple[int, ...]
    shape: Shape

    pointwise = False

    @property
    def operands(self) -> tuple[Affine, ...]:
        """The one."""
        return (self.operand,)

    @property
    def count(self) -> int:
        """How many elements each sum has."""
        return prod(self.operand.shape[axis] for axis in self.axes)

    @property
    def interval(self) -> Interval:
        """As often the operand's."""
        low, high = interval_of(self.operand)
        return low * self.count, high * self.count

    def of(self, operand: Affine) -> Total:
        """The same of another operand of the same shape."""
        return Total(operand, self.axes, self.shape)

    def evaluate(self, operand: Reals) -> Reals:
        """The sum."""
        whole = np.broadcast_to(operand, self.operand.shape)
        total: Reals = whole.sum(axis=self.axes).reshape(self.shape)
        return total

    def integers(self, bits: int, reach: float) -> Term:
        """An int32 sum of integers with as many bits as leave room for it."""
        room = min(bits, MOST_BITS) - ceil(log2(self.count))
        term = integers(self.operand, room, reach)
        node = apply(Sum(self.axes), expanded(term.node, self.operand.shape))
        return Term(reshaped(node, self.shape), term.scale)


@dataclass(frozen=True)
class Highest:
    """``max operand`` over ``axes``."""

    operand: Affine
    axes: tuple[int, ...]
    shape: Shape

    pointwise = False

    @property
    def operands(self) -> tuple[Affine, ...]:
        """The one."""
        return (self.operand,)

    @property
    def interval(self) -> Interval:
        """That of the operand."""
        return interval_of(self.operand)

    def of(self, operand: Affine) -> Highest:
        """The same of another operand of the same shape."""
        return Highest(operand, self.axes, self.shape)

    def evaluate(self, operand: Reals) -> Reals:
        """The maximum."""
        whole = np.broadcast_to(operand, self.operand.shape)
        highest: Reals = whole.max(axis=self.axes).reshape(self.shape)
        return highest

    def integers(self, bits: int, reach: float) -> Term:
        """The largest integer: steps are positive."""
        term = integers(self.operand, bits, reach)
        node = apply(Peak(self.axes), expanded(term.node, self.operand.shape))
        return Term(reshaped(node, self.shape), term.scale)


@dataclass(frozen=True)
class BelowPeak:
    """``operand - max operand`` over ``axes``: never positive, and 0 somewhere."""

    operand: Affine
    axes: tuple[int, ...]

    pointwise = False

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
        """As far down as the operand's ends are apart."""
        low, high = interval_of(self.operand)
        return low - high, 0.0

    def of(self, operand: Affine) -> BelowPeak:
        """The same of another operand of the same shape."""
        return BelowPeak(operand, self.axes)

    def evaluate(self, operand: Reals) -> Reals:
        """The difference."""
        whole = np.broadcast_to(operand, self.shape)
        difference: Reals = whole - whole.max(axis=self.axes, keepdims=True)
        return difference

    def integers(self, bits: int, reach: float) -> Term:
        """A difference of integers, which the interval of its node knows to be negative."""
        term = integers(self.operand, min(bits, MOST_BITS) - 1, reach)
        node = expanded(term.node, self.shape)
        below = apply(SUBTRACT_INTEGERS, node, apply(Peak(self.axes), node))
        low, high = node.interval
        return Term(replace(below, interval=(low - high, 0)), term.scale)
