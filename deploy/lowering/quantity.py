"""What a Relax expression means in integers, while a layer is being translated.

Between two quantization boundaries a network computes with real numbers. Most of that is affine:
products of dequantized tensors, sums, scalings, and then a ReLU. An :class:`Affine` keeps it in
integers, ``clip(sum_k scale_k * node_k + constant)``, exactly, until a QuantizeLinear turns it into
one integer requantization. What is not affine (a division, a square root) becomes a :class:`Real`,
a single-precision node. Real matrix products and convolutions do not exist: their translation
raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.lowering.graph import Array, Node, Shape
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import (
    ADD,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
    TO_REAL,
    Elementwise,
)
from entrain.deploy.lowering.operators.layout import Broadcast
from entrain.deploy.lowering.operators.leaves import Constant

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Term:
    """``scale * node``: an integer node and the real width of its step (broadcasts to it)."""

    node: Node
    scale: Reals


@dataclass(frozen=True)
class Affine:
    """``clip(sum of terms + constant, low, high)``, of shape ``shape``.

    Every node, scale and the constant broadcast to that shape. A ReLU is ``low = 0``.
    """

    terms: tuple[Term, ...]
    constant: Reals
    shape: Shape
    low: float = -inf
    high: float = inf

    @property
    def clipped(self) -> bool:
        """Whether there are bounds."""
        return isfinite(self.low) or isfinite(self.high)


@dataclass(frozen=True)
class Real:
    """A single-precision node."""

    node: Node

    @property
    def shape(self) -> Shape:
        """Shape of the node."""
        return self.node.shape


Quantity = Affine | Real


def known(array: Array) -> Affine:
    """A constant array of reals."""
    return Affine((), np.asarray(array, np.float64), tuple(np.shape(array)))


def value_of(quantity: Quantity) -> Reals | None:
    """The array that a quantity is, if it is known when lowering; else None."""
    if isinstance(quantity, Real):
        operator = quantity.node.operator
        return operator.array.astype(np.float64) if isinstance(operator, Constant) else None
    total = np.broadcast_to(quantity.constant, quantity.shape).astype(np.float64)
    for term in quantity.terms:
        if not isinstance(term.node.operator, Constant):
            return None
        total = total + term.scale * term.node.operator.array.astype(np.float64)
    return np.clip(total, quantity.low, quantity.high)


def sole_term(quantity: Quantity) -> Term | None:
    """The one integer tensor with its step, if the quantity is no more than that."""
    if not isinstance(quantity, Affine) or len(quantity.terms) != 1 or quantity.clipped:
        return None
    (term,) = quantity.terms
    return None if quantity.constant.any() or term.node.shape != quantity.shape else term


def to_real(quantity: Quantity) -> Node:
    """The quantity in single precision: each term times its scale, summed in order."""
    if isinstance(quantity, Real):
        return quantity.node
    array = value_of(quantity)
    if array is not None:
        return _float32(array)
    scaled = [
        apply(MULTIPLY, apply(TO_REAL, term.node), _float32(term.scale)) for term in quantity.terms
    ]
    total = scaled[0]
    for summand in scaled[1:]:
        total = apply(ADD, total, summand)
    if quantity.constant.any():
        total = apply(ADD, total, _float32(quantity.constant))
    if isfinite(quantity.low):
        total = apply(MAXIMUM, total, _float32(np.asarray(quantity.low)))
    if isfinite(quantity.high):
        total = apply(MINIMUM, total, _float32(np.asarray(quantity.high)))
    return _expanded(total, quantity.shape)


def rearrange(quantity: Quantity, move: Callable[[Node], Node], shape: Shape) -> Quantity:
    """The quantity with its elements moved to ``shape``; ``move`` acts on nodes of its shape."""
    if isinstance(quantity, Real):
        return Real(_moved(quantity.node, move, {}))

    def moved(array: Reals) -> Reals:
        if array.size == 1:
            return array.reshape(())
        full = move(constant(np.broadcast_to(array, quantity.shape)))
        return compressed(full.operator.reference())

    terms = tuple(
        Term(_moved(_expanded(term.node, quantity.shape), move, {}), moved(term.scale))
        for term in quantity.terms
    )
    return replace(quantity, terms=terms, constant=moved(quantity.constant), shape=shape)


def _moved(node: Node, move: Callable[[Node], Node], done: dict[int, Node]) -> Node:
    """The moved node; of an element-wise one the operands move, so that moves stay at the leaves.

    There they cost nothing, and the whole remains recognisable as a function of one tensor.
    """
    if id(node) not in done:
        alike = all(o.shape == node.shape or _is_number(o) for o in node.operands)
        if isinstance(node.operator, Elementwise) and alike:
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


def _expanded(node: Node, shape: Shape) -> Node:
    """The node broadcast to a shape."""
    return node if node.shape == shape else apply(Broadcast(shape), node)


def _float32(array: Reals) -> Node:
    return constant(np.asarray(array, np.float32))
