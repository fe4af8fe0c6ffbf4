"""Pools: the largest or the average element of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Array, Node, Operator, Shape
from entrain.deploy.lowering.integers import PART_BITS, in_integers
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.layout import Reshape
from entrain.deploy.lowering.operators.pool import PoolMax, PoolSum, Window
from entrain.deploy.lowering.quantity import Affine, Quantity, Reals, Term, even_along
from entrain.deploy.lowering.translations.contract import Translation, integers, result_shape
from entrain.deploy.lowering.translations.offsets import below_offset


def _window(call: Any) -> Window:
    """The window's attributes; over one axis it is an image of one row."""
    attributes = call.attrs
    padding = integers(attributes.padding)
    if len(padding) == 2:
        padding = (0, padding[0], 0, padding[1])
    top, left, bottom, right = padding
    (rows, columns), (tall, wide), (down, along) = (
        (1, *integers(numbers))[-2:]
        for numbers in (attributes.pool_size, attributes.strides, attributes.dilation)
    )
    return Window((rows, columns), (tall, wide), (top, left, bottom, right), (down, along))


def _over_images(operator: Operator, node: Node, shape: Shape) -> Node:
    """The pool of a node of three or four axes."""
    if len(node.shape) == 4:
        return apply(operator, node)
    return apply(Reshape(shape), apply(operator, apply(Reshape(_image(node.shape)), node)))


def _image(shape: Shape) -> Shape:
    """The shape as (N, C, Y, X)."""
    return shape if len(shape) == 4 else (*shape[:2], 1, shape[2])


def _even_image(operand: Quantity, kind: str) -> Affine:
    """The operand, if its steps are the same all over an image."""
    quantity = in_integers(operand, PART_BITS, inf)
    if quantity.terms:
        rank = len(quantity.shape)
        axes = tuple(range(2, rank))
        steps = [*(term.scale for term in quantity.terms), quantity.constant]
        whole = all(term.node.shape == quantity.shape for term in quantity.terms)
        if whole and all(even_along(step, axes, rank) for step in steps):
            return quantity
    raise _not_an_image(kind)


def _not_an_image(kind: str) -> UnsupportedOperator:
    return UnsupportedOperator(
        f"{kind} of something that is not a quantized image",
        remedy="put QuantizeLinear and DequantizeLinear before it",
    )


def max_pool(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """The largest integer is that of the largest real: quantization keeps the order."""
    quantity, window, shape = _even_image(operands[0], "MaxPool"), _window(call), result_shape(call)
    if len(quantity.terms) != 1 or not (quantity.terms[0].scale > 0).all():
        raise _not_an_image("MaxPool")
    (term,) = quantity.terms
    if not _counts(window, term.node, shape).all():
        raise UnsupportedOperator(
            "a MaxPool with a window that covers nothing but padding", remedy="correct its padding"
        )
    node = below_offset(term.node, lambda image: _over_images(PoolMax(window), image, shape))
    return replace(quantity, terms=(Term(node, term.scale),), shape=shape)


def average_pool(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """A sum; the number of elements goes into the step, which differs where padding is left out."""
    quantity, window, shape = (
        _even_image(operands[0], "AveragePool"),
        _window(call),
        result_shape(call),
    )
    covered = _counts(window, quantity.terms[0].node, shape)
    whole = window.kernel[0] * window.kernel[1]
    counts = np.full_like(covered, whole) if call.attrs.count_include_pad else covered
    if not counts.all():
        raise UnsupportedOperator(
            "an AveragePool with a window that covers nothing but padding",
            remedy="correct its padding",
        )
    if quantity.clipped:
        raise UnsupportedOperator(
            "AveragePool of an activation that was not quantized",
            remedy="put QuantizeLinear and DequantizeLinear behind the activation",
        )

    def shared(step: Reals) -> Reals:
        return step / counts.reshape(-1)[0] if (counts == counts.flat[0]).all() else step / counts

    terms = tuple(
        Term(_over_images(PoolSum(window), term.node, shape), shared(term.scale))
        for term in quantity.terms
    )
    constant = quantity.constant * covered / counts if quantity.constant.any() else np.zeros(())
    return Affine(terms, constant, shape)


def _counts(window: Window, node: Node, shape: Shape) -> Array:
    """How many elements of the image each window covers, shaped as the result's last axes."""
    image = _image(node.shape)
    if window.places(image) != _image(shape):
        raise UnsupportedOperator(
            "a pool whose last window reaches beyond its padding",
            remedy="export it with ceil_mode 0",
        )
    return window.counts(image).reshape(shape[2:])


TRANSLATIONS: dict[str, Translation] = {
    "relax.nn.max_pool1d": max_pool,
    "relax.nn.max_pool2d": max_pool,
    "relax.nn.avg_pool1d": average_pool,
    "relax.nn.avg_pool2d": average_pool,
}
ONNX_OPERATORS = {"MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"}
