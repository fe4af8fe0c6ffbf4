"""Sums and means over axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Node
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import MULTIPLY
from entrain.deploy.lowering.operators.layout import Reshape
from entrain.deploy.lowering.operators.reduction import Sum
from entrain.deploy.lowering.quantity import (
    Affine,
    Quantity,
    Real,
    Reals,
    Term,
    even_along,
    to_real,
)
from entrain.deploy.lowering.translations.contract import Translation, integers, result_shape


def _axes(call: Any, rank: int) -> tuple[int, ...]:
    axes = call.attrs.axis
    return tuple(range(rank)) if axes is None else tuple(sorted(a % rank for a in integers(axes)))


def total(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Integer sums where every scale is even along the axes, else single precision."""
    (quantity,) = operands
    rank = len(quantity.shape)
    axes, shape = _axes(call, rank), result_shape(call)

    def summed(node: Node, dtype: str) -> Node:
        return _reshaped(apply(Sum(axes, dtype), node), shape)

    if (
        isinstance(quantity, Affine)
        and not quantity.clipped
        and all(t.node.shape == quantity.shape for t in quantity.terms)
        and all(even_along(t.scale, axes, rank) for t in quantity.terms)
    ):
        terms = tuple(
            Term(summed(t.node, "int32"), _without(t.scale, axes, rank, shape))
            for t in quantity.terms
        )
        known = np.broadcast_to(quantity.constant, quantity.shape).sum(axis=axes)
        return Affine(terms, known.reshape(shape) if known.any() else np.zeros(()), shape)
    return Real(summed(to_real(quantity), "float32"))


def mean(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """The sum, with the count in the scale."""
    shape = operands[0].shape
    count = float(np.prod([shape[axis] for axis in _axes(call, len(shape))]))
    whole = total(call, operands)
    if isinstance(whole, Affine):
        terms = tuple(Term(t.node, t.scale / count) for t in whole.terms)
        return replace(whole, terms=terms, constant=whole.constant / count)
    return Real(apply(MULTIPLY, whole.node, constant(np.asarray(1.0 / count, np.float32))))


def _reshaped(node: Node, shape: tuple[int, ...]) -> Node:
    return node if node.shape == shape else apply(Reshape(shape), node)


def _without(scale: Reals, axes: tuple[int, ...], rank: int, shape: tuple[int, ...]) -> Reals:
    if scale.size == 1:
        return scale.reshape(())
    aligned = scale.reshape((1,) * (rank - scale.ndim) + scale.shape)
    kept = len(shape) == rank
    return aligned if kept else np.squeeze(aligned, axis=axes)


TRANSLATIONS: dict[str, Translation] = {"relax.sum": total, "relax.mean": mean}
ONNX_OPERATORS = {"ReduceSum", "ReduceMean"}
