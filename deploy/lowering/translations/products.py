"""Matrix products and convolutions: integer, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Node
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.layout import permuted
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.quantity import Affine, Quantity, Term, even_along, sole_term
from entrain.deploy.lowering.translations.contract import Translation, integers, result_shape


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
    a, b = (_integer_operand(operand, "matrix product") for operand in operands)
    ranks = len(a.node.shape), len(b.node.shape)
    if min(ranks) < 2:
        raise UnsupportedOperator(
            "a matrix product with a vector", remedy="give both operands two axes"
        )
    if not even_along(a.scale, (-1,), ranks[0]) or not even_along(b.scale, (-2,), ranks[1]):
        raise UnsupportedOperator(
            "the matrix product has a scale for each element of the summed axis",
            remedy="quantize activations per tensor, and weights per tensor or per output channel",
        )
    node = apply(MatMul(), a.node, _last_two_swapped(b.node))
    return Affine((Term(node, a.scale * b.scale),), np.zeros(()), result_shape(call))


def _last_two_swapped(node: Node) -> Node:
    *lead, rows, columns = range(len(node.shape))
    return permuted(node, (*lead, columns, rows))


def convolution(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Two-dimensional convolution of integer operands; weights may have a scale a channel."""
    a, w = (_integer_operand(operand, "convolution") for operand in operands)
    if a.scale.size != 1 or not even_along(w.scale, (1, 2, 3), 4):
        raise UnsupportedOperator(
            "the convolution has a scale for each input channel",
            remedy="quantize activations per tensor, and weights per tensor or per output channel",
        )
    top, left, bottom, right = integers(call.attrs.padding)
    tall, wide = integers(call.attrs.strides)
    down, along = integers(call.attrs.dilation)
    operator = Convolution(
        (tall, wide), (top, left, bottom, right), (down, along), int(call.attrs.groups)
    )
    if not operator.sees_the_image(a.node, w.node):
        raise UnsupportedOperator(
            "a convolution that reads nothing but its padding", remedy="correct its padding"
        )
    node = apply(operator, a.node, w.node)
    channels = w.scale.reshape(()) if w.scale.size == 1 else w.scale.reshape(-1, 1, 1)
    return Affine((Term(node, a.scale.reshape(()) * channels),), np.zeros(()), result_shape(call))


TRANSLATIONS: dict[str, Translation] = {"relax.matmul": matmul, "relax.nn.conv2d": convolution}
ONNX_OPERATORS = {"MatMul", "Gemm", "Conv"}
