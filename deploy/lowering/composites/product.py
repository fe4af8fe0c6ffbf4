"""A product of two tensors, element by element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrain.deploy.lowering.graph import Interval, Shape
from entrain.deploy.lowering.integers import MOST_BITS, integers, interval_of, narrowed, width
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.elementwise import MULTIPLY_INTEGERS
from entrain.deploy.lowering.operators.wide import WideProduct, narrowed_long
from entrain.deploy.lowering.quantity import Affine, Reals, Term, alike


@dataclass(frozen=True)
class Product:
    """``left * right``; exact where both are integer tensors whose product fits 30 bits."""

    left: Affine
    right: Affine

    pointwise = True

    @property
    def shape(self) -> Shape:
        """The broadcast shape."""
        return tuple(np.broadcast_shapes(self.left.shape, self.right.shape))

    @property
    def operands(self) -> tuple[Affine, ...]:
        """Both."""
        return self.left, self.right

    @property
    def is_square(self) -> bool:
        """Whether both are the same."""
        return alike(self.left, self.right)

    @property
    def interval(self) -> Interval:
        """By the corners; a square is not negative."""
        left, right = interval_of(self.left), interval_of(self.right)
        corners = [0.0 if 0.0 in (a, b) else a * b for a in left for b in right]
        return max(0.0, min(corners)) if self.is_square else min(corners), max(corners)

    def of(self, left: Affine, right: Affine) -> Product:
        """The same of other operands."""
        return Product(left, right)

    def evaluate(self, left: Reals, right: Reals) -> Reals:
        """The product."""
        product: Reals = left * right
        return product

    def integers(self, bits: int, _reach: float) -> Term:
        """Exact in int32 if it fits, else in 64 bits and rounded once."""
        left, right = integers(self.left, MOST_BITS), integers(self.right, MOST_BITS)
        if width(left.node) + width(right.node) <= MOST_BITS:
            product = apply(MULTIPLY_INTEGERS, left.node, right.node)
            return narrowed(Term(product, left.scale * right.scale), bits)
        first, second = left.node, left.node if self.is_square else right.node
        node, surplus = narrowed_long(apply(WideProduct(), first, second), min(bits, MOST_BITS))
        return Term(node, left.scale * right.scale * 2.0**surplus)
