"""Sums, means and variances over axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from entrain.deploy.lowering.composites.total import Total, kept, reshaped
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.reduction import Sum
from entrain.deploy.lowering.quantity import (
    Affine,
    Part,
    Quantity,
    Reals,
    Term,
    even_along,
    expanded,
    known,
    value_of,
)
from entrain.deploy.lowering.translations.contract import Translation, integers, result_shape
from entrain.deploy.lowering.translations.elementwise import product_of, scaled, sum_of, summand

Axes = tuple[int, ...]


def axes_of(call: Any, rank: int) -> Axes:
    """The axes of a reduction, in order."""
    axes = call.attrs.axis
    return tuple(range(rank)) if axes is None else tuple(sorted(a % rank for a in integers(axes)))


def sum_over(quantity: Quantity, axes: Axes, shape: tuple[int, ...]) -> Affine:
    """Integer sums where the steps are even along the axes, else sums of what is scaled first."""
    array = value_of(quantity)
    if array is not None:
        return known(array.sum(axis=axes).reshape(shape))
    flat, rank = summand(quantity), len(quantity.shape)
    terms: list[Term] = []
    parts: list[Part] = []
    for term in flat.terms:
        if even_along(term.scale, axes, rank):
            node = apply(Sum(axes), expanded(term.node, flat.shape))
            terms.append(Term(reshaped(node, shape), _without(term.scale, axes, rank, shape)))
        else:
            uneven = Affine((term,), np.zeros(()), flat.shape)
            parts.append(Part(Total(uneven, axes, shape), np.ones(())))
    for part in flat.parts:
        even = even_along(part.scale, axes, rank)
        inner = Part(part.composite, np.ones(()) if even else part.scale)
        summed = Affine((), np.zeros(()), flat.shape, parts=(inner,))
        outer = _without(part.scale, axes, rank, shape) if even else np.ones(())
        parts.append(Part(Total(summed, axes, shape), outer))
    constant = np.broadcast_to(flat.constant, flat.shape).sum(axis=axes)
    constant = constant.reshape(shape) if constant.any() else np.zeros(())
    return Affine(tuple(terms), constant, shape, parts=tuple(parts))


def mean_over(quantity: Quantity, axes: Axes, shape: tuple[int, ...]) -> Affine:
    """The sum, with the count in the scale."""
    count = prod(quantity.shape[axis] for axis in axes)
    return scaled(sum_over(quantity, axes, shape), np.asarray(1.0 / count), shape)


def without_mean(quantity: Quantity, axes: Axes) -> Affine:
    """``x - mean x``."""
    shape = quantity.shape
    mean = mean_over(quantity, axes, kept(shape, axes))
    return sum_of(quantity, scaled(mean, np.asarray(-1.0), mean.shape), shape)


def total(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """ReduceSum."""
    (quantity,) = operands
    return sum_over(quantity, axes_of(call, len(quantity.shape)), result_shape(call))


def mean(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """ReduceMean."""
    (quantity,) = operands
    return mean_over(quantity, axes_of(call, len(quantity.shape)), result_shape(call))


def variance(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """The mean of the squares of what is left without the mean."""
    (quantity,) = operands
    axes = axes_of(call, len(quantity.shape))
    centred = without_mean(quantity, axes)
    return mean_over(product_of(centred, centred, quantity.shape), axes, result_shape(call))


def _without(scale: Reals, axes: Axes, rank: int, shape: tuple[int, ...]) -> Reals:
    if scale.size == 1:
        return scale.reshape(())
    aligned = scale.reshape((1,) * (rank - scale.ndim) + scale.shape)
    return aligned if len(shape) == rank else np.squeeze(aligned, axis=axes)


TRANSLATIONS: dict[str, Translation] = {
    "relax.sum": total,
    "relax.mean": mean,
    "relax.variance": variance,
}
ONNX_OPERATORS = {*("ReduceSum", "ReduceMean", "ReduceL2", "ReduceSumSquare")}
