"""Matrix products of tensors that no quantizer has brought to 8 bits, between two computed ones.

An attention whose couplings or moments are not quantized is made of them. Operands get as many
bits as their exact products leave room for in 64; the sums are rounded once, to 30 bits.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2

import numpy as np

from entrain.deploy.lowering.composites.unit import Unit
from entrain.deploy.lowering.graph import Node
from entrain.deploy.lowering.integers import MOST_BITS, ROUNDED_BITS, integers
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.wide import WideMatMul, narrowed_long
from entrain.deploy.lowering.quantity import (
    Affine,
    Quantity,
    Term,
    expanded,
    sole_part,
    value_of,
)

SUM_BITS = 61
LENGTH_ERROR = 2.0**-11  # of a vector of length 1 in 15 bits a component

Operand = tuple[Quantity, Term]


def wide_matmul(left: Quantity, swapped: Quantity) -> Affine:
    """``left @ right``, where ``swapped`` is the right one with its last two axes swapped.

    Raises:
        UnsupportedOperator: an operand may grow without bound.
    """
    room = (SUM_BITS - ceil(log2(left.shape[-1]))) // 2
    a, b = (_operand(each, min(room, ROUNDED_BITS)) for each in (left, swapped))
    product = _within_lengths(apply(WideMatMul(), a.node, b.node), (left, a), (swapped, b))
    node, surplus = narrowed_long(product, MOST_BITS)
    scale = a.scale * b.scale * 2.0**surplus
    return Affine((Term(node, scale),), np.zeros(()), node.shape)


def _operand(quantity: Quantity, bits: int) -> Term:
    term = integers(quantity, bits)
    return Term(expanded(term.node, quantity.shape), term.scale)


def _within_lengths(product: Node, left: Operand, right: Operand) -> Node:
    """The product's node with an interval that knows Cauchy's inequality.

    A vector of length 1 times a known one is no larger than that one's length.
    """
    for (vectors, unit), (others, term) in ((left, right), (right, left)):
        known = value_of(others)
        if known is not None and _has_length_one(vectors):
            longest = float(np.sqrt((known * known).sum(axis=-1)).max())
            reach = ceil(longest / float(unit.scale * term.scale) * (1.0 + LENGTH_ERROR))
            low, high = product.interval
            return replace(product, interval=(max(low, -reach), min(high, reach)))
    return product


def _has_length_one(quantity: Quantity) -> bool:
    part = sole_part(quantity)
    if part is None or not isinstance(part.composite, Unit) or abs(part.scale.item()) > 1.0:
        return False
    return part.composite.axes == (len(quantity.shape) - 1,)
