"""Matrix products and convolutions: integer, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Node
from entrain.deploy.lowering.integers import width
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.join import Pad
from entrain.deploy.lowering.operators.layout import Reshape, permuted
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.quantity import (
    Affine,
    Quantity,
    Term,
    even_along,
    rearrange,
    sole_term,
    value_of,
)
from entrain.deploy.lowering.translations.contract import Translation, integers, result_shape
from entrain.deploy.lowering.translations.offsets import less, stored
from entrain.deploy.lowering.translations.wide_products import wide_matmul

WIDEST = 16  # bits of what is multiplied in 32: weights minus their zero point, and activations


def _integer_operand(quantity: Quantity, name: str) -> Term:
    """The single integer tensor that an operand is."""
    term = sole_term(quantity)
    if term is None:
        raise UnsupportedOperator(
            f"the {name} has an operand that is not quantized, so it would stay in floating point",
            remedy="put QuantizeLinear and DequantizeLinear on both operands",
        )
    return term


def matmul(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """``a @ b`` for integer operands; any scale that is the same along the summed axis."""
    if _are_wide(operands):
        left, right = operands
        return wide_matmul(left, _with_last_two_swapped(right))
    a, b = (_integer_operand(operand, "matrix product") for operand in operands)
    a, b = _as_matrix(a, -2), _as_matrix(b, -1)
    ranks = len(a.node.shape), len(b.node.shape)
    if not even_along(a.scale, (-1,), ranks[0]) or not even_along(b.scale, (-2,), ranks[1]):
        raise UnsupportedOperator(
            "the matrix product has a scale for each element of the summed axis",
            remedy="quantize activations per tensor, and weights per tensor or per output channel",
        )
    node = apply(MatMul(), a.node, _last_two_swapped(b.node))
    product = Affine((Term(node, a.scale * b.scale),), np.zeros(()), node.shape)
    shape = result_shape(call)
    if shape == node.shape:
        return product
    return rearrange(product, lambda moved: apply(Reshape(shape), moved), shape)


def _are_wide(operands: Sequence[Quantity]) -> bool:
    """Whether a quantizer is missing on one that is computed, so that 32 bits are too few."""
    if any(len(operand.shape) < 2 or _is_real(operand) for operand in operands):
        return False
    terms = [sole_term(operand) for operand in operands]
    return any(term is None or width(term.node) > WIDEST for term in terms)


def _is_real(quantity: Quantity) -> bool:
    """Whether a quantity is a constant that nobody quantized."""
    return not quantity.terms and value_of(quantity) is not None


def _with_last_two_swapped(quantity: Quantity) -> Quantity:
    *lead, rows, columns = quantity.shape
    return rearrange(quantity, _last_two_swapped, (*lead, columns, rows))


def _as_matrix(term: Term, axis: int) -> Term:
    """A vector gets a second axis, as numpy's ``matmul`` has it; anything else stays."""
    if len(term.node.shape) != 1:
        return term
    shape = (1, *term.node.shape) if axis == -2 else (*term.node.shape, 1)
    scale = term.scale.reshape(shape if term.scale.size > 1 else ())
    return Term(apply(Reshape(shape), term.node), scale)


def _last_two_swapped(node: Node) -> Node:
    *lead, rows, columns = range(len(node.shape))
    return permuted(node, (*lead, columns, rows))


def convolution(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Convolution over two axes, or over one as an image of one row.

    Weights may have a scale a channel. A Pad before it becomes padding of its own.
    """
    a, w = (_integer_operand(operand, "convolution") for operand in operands)
    rank = len(w.node.shape)
    if a.scale.size != 1 or not even_along(w.scale, tuple(range(1, rank)), rank):
        raise UnsupportedOperator(
            "the convolution has a scale for each input channel",
            remedy="quantize activations per tensor, and weights per tensor or per output channel",
        )
    bare, padding = _unpadded(a.node)
    operator = _convolution(call.attrs, padding)
    image, kernel = _as_image(bare), _as_image(w.node)
    if not operator.sees_the_image(image, kernel):
        raise UnsupportedOperator(
            "a convolution that reads nothing but its padding", remedy="correct its padding"
        )
    node, shape = apply(operator, image, kernel), result_shape(call)
    channels = w.scale.reshape(-1, *[1] * (rank - 2)) if w.scale.size > 1 else w.scale.reshape(())
    node = node if node.shape == shape else apply(Reshape(shape), node)
    return Affine((Term(node, a.scale.reshape(()) * channels),), np.zeros(()), shape)


def _as_image(node: Node) -> Node:
    """Three axes become four, with one row."""
    if len(node.shape) == 4:
        return node
    batch, channels, columns = node.shape
    return apply(Reshape((batch, channels, 1, columns)), node)


def _unpadded(node: Node) -> tuple[Node, tuple[int, ...]]:
    """The node below zeros around its spatial axes, and how many: all before, then all behind."""
    below, offset = stored(node)
    pad = below.operator
    if isinstance(pad, Pad) and pad.fill == offset and not any(pad.before[:2] + pad.after[:2]):
        return less(below.operands[0], offset), (*pad.before[2:], *pad.after[2:])
    return node, (0,) * 2 * (len(node.shape) - 2)


def _convolution(attributes: Any, more: tuple[int, ...]) -> Convolution:
    """The operator with its own padding and more; over one axis with one row."""
    pairs = zip(integers(attributes.padding), more, strict=True)
    padding = [own + other for own, other in pairs]
    if len(padding) == 2:
        padding = [0, padding[0], 0, padding[1]]
    top, left, bottom, right = padding
    (tall, wide), (down, along) = (
        (1, *integers(numbers))[-2:] for numbers in (attributes.strides, attributes.dilation)
    )
    return Convolution(
        (tall, wide), (top, left, bottom, right), (down, along), int(attributes.groups)
    )


TRANSLATIONS: dict[str, Translation] = {
    "relax.matmul": matmul,
    "relax.nn.conv1d": convolution,
    "relax.nn.conv2d": convolution,
}
ONNX_OPERATORS = {"MatMul", "Gemm", "Conv"}
