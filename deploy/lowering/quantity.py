"""What a Relax expression means in integers, while a layer is being translated.

Between two quantization boundaries a network computes with real numbers. Most of that is affine:
products of dequantized tensors, sums, scalings, and then a ReLU. An :class:`Affine` keeps it in
integers, ``clip(sum_k scale_k * node_k + constant)``, exactly, until a QuantizeLinear turns it into
one integer requantization. What is not affine (a product of two tensors, a quotient, a function) is
a :class:`Composite` (``composites/``): a summand that becomes an integer tensor only when it is
known how precise it has to be (:mod:`entrain.deploy.lowering.integers`). Real matrix products and
convolutions do not exist: their translation raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from math import inf, isfinite
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import Elementwise
from entrain.deploy.lowering.operators.layout import Broadcast
from entrain.deploy.lowering.operators.leaves import Constant

Reals = NDArray[np.float64]
Move = Callable[[Node], Node]


@dataclass(frozen=True)
class Term:
    """``scale * node``: an integer node and the real width of its step (broadcasts to it)."""

    node: Node
    scale: Reals


class Composite(Protocol):
    """A real tensor made of quantities. One file of ``composites/`` each, a frozen dataclass."""

    @property
    def shape(self) -> Shape:
        """Its shape."""

    @property
    def operands(self) -> tuple[Affine, ...]:
        """What it is made of."""

    @property
    def pointwise(self) -> bool:
        """Whether each element depends on that element of the operands alone; they broadcast."""

    @property
    def interval(self) -> Interval:
        """The smallest and the largest real number it can be; infinite if nobody knows."""

    @property
    def evaluate(self) -> Callable[..., Reals]:
        """Its value for values of the operands, in double precision."""

    @property
    def of(self) -> Callable[..., Composite]:
        """The same of other operands; for a pointwise one alone."""

    @property
    def integers(self) -> Callable[[int, float], Term]:
        """An int32 node of at most so many bits, and its step, one number.

        The second argument is the largest magnitude that matters; beyond it the node saturates.
        """


@dataclass(frozen=True)
class Part:
    """``scale * composite``: a summand that is no integer tensor yet."""

    composite: Composite
    scale: Reals


@dataclass(frozen=True, eq=False)
class Affine:
    """``clip(sum of terms and parts + constant, low, high)``, of shape ``shape``.

    Every node, part, scale and the constant broadcast to that shape. A ReLU is ``low = 0``.
    """

    terms: tuple[Term, ...]
    constant: Reals
    shape: Shape
    low: float = -inf
    high: float = inf
    parts: tuple[Part, ...] = ()

    @property
    def clipped(self) -> bool:
        """Whether there are bounds."""
        return isfinite(self.low) or isfinite(self.high)

    @property
    def scales(self) -> tuple[Reals, ...]:
        """Of all terms and parts."""
        return (*(term.scale for term in self.terms), *(part.scale for part in self.parts))


Quantity = Affine


def known(array: Array) -> Affine:
    """A constant array of reals."""
    return Affine((), np.asarray(array, np.float64), tuple(np.shape(array)))


def value_of(quantity: Quantity) -> Reals | None:
    """The array that a quantity is, if it is known when lowering; else None."""
    if quantity.parts:
        return None
    total = np.broadcast_to(quantity.constant, quantity.shape).astype(np.float64)
    for term in quantity.terms:
        if not isinstance(term.node.operator, Constant):
            return None
        total = total + term.scale * term.node.operator.array.astype(np.float64)
    return np.clip(total, quantity.low, quantity.high)


def sole_term(quantity: Quantity) -> Term | None:
    """The one integer tensor with its step, if the quantity is no more than that."""
    if len(quantity.terms) != 1 or quantity.clipped or quantity.parts:
        return None
    (term,) = quantity.terms
    return None if quantity.constant.any() or term.node.shape != quantity.shape else term


def sole_part(quantity: Quantity) -> Part | None:
    """The one composite with its scale, if the quantity is no more than that."""
    if len(quantity.parts) != 1 or quantity.terms or quantity.clipped or quantity.constant.any():
        return None
    (part,) = quantity.parts
    return part if part.scale.size == 1 and part.composite.shape == quantity.shape else None


def alike(a: Any, b: Any) -> bool:
    """Whether two quantities, or nodes, are built of the same parts in the same way."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if is_dataclass(a):
        return all(alike(getattr(a, each.name), getattr(b, each.name)) for each in fields(a))
    return bool(a == b)


def rearrange(quantity: Quantity, move: Move, shape: Shape) -> Quantity:
    """The quantity with its elements moved to ``shape``; ``move`` acts on nodes of its shape."""

    def moved(array: Reals) -> Reals:
        if array.size == 1:
            return array.reshape(())
        full = move(constant(np.broadcast_to(array, quantity.shape)))
        return compressed(full.operator.reference())

    terms = tuple(
        Term(_moved(expanded(term.node, quantity.shape), move, {}), moved(term.scale))
        for term in quantity.terms
    )
    parts = tuple(
        Part(_moved_composite(part.composite, move, quantity.shape, shape), moved(part.scale))
        for part in quantity.parts
    )
    return replace(
        quantity, terms=terms, constant=moved(quantity.constant), shape=shape, parts=parts
    )


def _moved_composite(composite: Composite, move: Move, spread: Shape, shape: Shape) -> Composite:
    """The moved composite; of a pointwise one the operands move, so that moves stay below.

    Where a row shares an operand they stay above: it is to be computed once a row.
    """
    if not composite.pointwise or any(each.shape != spread for each in composite.operands):
        return Moved(composite, move, spread, shape)
    return composite.of(*(rearrange(operand, move, shape) for operand in composite.operands))


@dataclass(frozen=True)
class Moved:
    """A composite with its elements moved about, after it was broadcast to ``spread``."""

    composite: Composite
    move: Move
    spread: Shape
    shape: Shape

    pointwise = False

    @property
    def operands(self) -> tuple[Affine, ...]:
        """Those of the composite."""
        return self.composite.operands

    @property
    def interval(self) -> Interval:
        """That of the composite."""
        return self.composite.interval

    def of(self, *_operands: Affine) -> Composite:
        """Never called: it is not pointwise."""
        raise LookupError("operands of what was moved")

    def evaluate(self, *operands: Reals) -> Reals:
        """The composite's value, moved."""
        value = np.broadcast_to(self.composite.evaluate(*operands), self.spread)
        moved: Reals = self.move(constant(value)).operator.reference()
        return moved

    def integers(self, bits: int, reach: float) -> Term:
        """The composite's node, moved."""
        term = self.composite.integers(bits, reach)
        return Term(self.move(expanded(term.node, self.spread)), term.scale)


def _moved(node: Node, move: Move, done: dict[int, Node]) -> Node:
    """The moved node; of an element-wise one the operands move, so that moves stay at the leaves.

    There they cost nothing, and the whole remains recognisable as a function of one tensor.
    """
    if id(node) not in done:
        if isinstance(node.operator, Elementwise) and all(
            o.shape == node.shape or _is_number(o) for o in node.operands
        ):
            operands = (
                _scalar(o) if _is_number(o) else _moved(o, move, done) for o in node.operands
            )
            done[id(node)] = apply(node.operator, *operands)
        else:
            done[id(node)] = move(node)
    return done[id(node)]


def _is_number(node: Node) -> bool:
    return isinstance(node.operator, Constant) and node.operator.array.size == 1


def _scalar(node: Node) -> Node:
    return constant(node.operator.reference().reshape(()))


def even_along(scale: Reals, axes: tuple[int, ...], rank: int) -> bool:
    """Whether a scale is the same all along some axes of a tensor of ``rank`` axes."""
    aligned = scale.reshape((1,) * (rank - scale.ndim) + scale.shape)
    return all(aligned.shape[axis] == 1 for axis in axes)


def compressed(array: Reals) -> Reals:
    """Axes along which nothing changes get extent 1; a constant array loses all its axes."""
    for axis in range(array.ndim):
        first = np.take(array, [0], axis=axis)
        if np.array_equal(np.broadcast_to(first, array.shape), array):
            array = first
    return array.reshape(()) if array.size == 1 else array


def expanded(node: Node, shape: Shape) -> Node:
    """The node broadcast to a shape."""
    return node if node.shape == shape else apply(Broadcast(shape), node)
