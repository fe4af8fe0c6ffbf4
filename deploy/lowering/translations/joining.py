"""Concat, and Pad, which arrives as a Concat with constants."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Node, Shape
from entrain.deploy.lowering.integers import PART_BITS, in_integers
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.join import Join, Pad
from entrain.deploy.lowering.operators.layout import Broadcast
from entrain.deploy.lowering.quantity import Affine, Quantity, Term, compressed, known, value_of
from entrain.deploy.lowering.translations.contract import Translation, integers, result_shape
from entrain.deploy.lowering.translations.offsets import less, stored


def concat(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """One behind the other, each with its own steps: those differ along the joined axis."""
    shape = result_shape(call)
    axis = (0 if call.attrs.axis is None else int(call.attrs.axis)) % len(shape)
    parts = [_affine(operand) for operand in operands if operand.shape[axis]]
    width = max(len(part.terms) for part in parts)
    low, high = _bounds(parts)
    terms = tuple(_joined(parts, k, axis) for k in range(width))
    constants = [np.broadcast_to(part.constant, part.shape) for part in parts]
    return Affine(terms, compressed(np.concatenate(constants, axis=axis)), shape, low, high)


def _affine(quantity: Quantity) -> Affine:
    """The operand in integers; a bare constant has no terms."""
    array = value_of(quantity)
    return in_integers(quantity, PART_BITS, inf) if array is None else known(array)


def _not_quantized(what: str) -> UnsupportedOperator:
    return UnsupportedOperator(
        f"a Concat of {what} and not quantized after that",
        remedy="put QuantizeLinear and DequantizeLinear before the Concat",
    )


def _bounds(parts: list[Affine]) -> tuple[float, float]:
    """The bounds that all parts share, within which constants lie."""
    bounds = {(part.low, part.high) for part in parts if part.terms} or {(-inf, inf)}
    (low, high), *others = bounds
    outside = any(
        ((part.constant < low) | (part.constant > high)).any() for part in parts if not part.terms
    )
    if others or outside:
        raise _not_quantized("tensors of which some were clipped")
    return low, high


def _joined(parts: list[Affine], k: int, axis: int) -> Term:
    """The k-th terms of the parts as one; a part without one counts as zeros."""
    terms = [part.terms[k] if k < len(part.terms) else None for part in parts]
    present = [
        _expanded(term.node, part.shape)
        for term, part in zip(terms, parts, strict=True)
        if term is not None
    ]
    nodes, offset = _stored_alike(present)
    nodes = nodes[::-1]
    pieces = [nodes.pop() if t else p.shape[axis] for t, p in zip(terms, parts, strict=True)]
    padded = _with_zeros(pieces, axis, offset)
    node = padded[0] if len(padded) == 1 else apply(Join(axis), *padded)
    step = next(term.scale.flat[0] for term in terms if term is not None)
    scales = [
        np.broadcast_to(np.asarray(step) if term is None else term.scale, part.shape)
        for term, part in zip(terms, parts, strict=True)
    ]
    return Term(less(node, offset), compressed(np.concatenate(scales, axis=axis)))


def _expanded(node: Node, shape: Shape) -> Node:
    return node if node.shape == shape else apply(Broadcast(shape), node)


def _stored_alike(nodes: list[Node]) -> tuple[list[Node], int]:
    """The nodes as stored and the zero point that they share; as they are, and 0, if none."""
    below, offsets = zip(*map(stored, nodes), strict=True)
    types, offset = {node.dtype for node in below}, offsets[0]
    if len(set(offsets)) == len(types) == 1:
        low, high = integer_range(types.pop())
        if low <= offset <= high:
            return list(below), offset
    return nodes, 0


def _with_zeros(pieces: list[Node | int], axis: int, fill: int) -> list[Node]:
    """Numbers of zeros become padding of the node before them, the first ones of the one behind."""
    nodes: list[Node] = []
    leading = 0
    for piece in pieces:
        if not isinstance(piece, int):
            nodes.append(_padded(piece, axis, leading, 0, fill))
            leading = 0
        elif nodes:
            nodes[-1] = _padded(nodes[-1], axis, 0, piece, fill)
        else:
            leading += piece
    return nodes


def _padded(node: Node, axis: int, before: int, after: int, fill: int) -> Node:
    """Padding along one axis, in one operator with padding along others."""
    if not before and not after:
        return node
    sides = np.zeros((2, len(node.shape)), int)
    sides[:, axis] = before, after
    if isinstance(node.operator, Pad) and node.operator.fill == fill:
        sides += node.operator.before, node.operator.after
        (node,) = node.operands
    return apply(Pad(integers(sides[0]), integers(sides[1]), fill), node)


TRANSLATIONS: dict[str, Translation] = {"relax.concat": concat}
ONNX_OPERATORS = {"Concat"}
