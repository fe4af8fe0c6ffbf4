"""Normalization of layers, as one node: LayerNormalization and RMSNormalization.

Written out as means, squares and roots they arrive at the same composite by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.composing import whole
from entrain.deploy.lowering.composites.unit import Unit
from entrain.deploy.lowering.quantity import Affine, Quantity, Reals, compressed, value_of
from entrain.deploy.lowering.translations.contract import Translation, integers
from entrain.deploy.lowering.translations.elementwise import scaled, sum_of, summand
from entrain.deploy.lowering.translations.reductions import without_mean


def layer_norm(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """``gamma (x - mean) / sqrt(variance + epsilon) + beta``."""
    x, gamma, beta = operands
    axes = tuple(axis % len(x.shape) for axis in integers(call.attrs.axes))
    normal = _normal(without_mean(x, axes), axes, float(call.attrs.epsilon))
    scale, shift = (_along(operand, axes, len(x.shape)) for operand in (gamma, beta))
    shifted = Affine((), compressed(shift), x.shape)
    return sum_of(scaled(normal, compressed(scale), x.shape), shifted, x.shape)


def rms_norm(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """``gamma x / sqrt(mean x^2 + epsilon)``."""
    x, gamma = operands
    axes = tuple(axis % len(x.shape) for axis in integers(call.attrs.axes))
    normal = _normal(summand(x), axes, float(call.attrs.epsilon))
    return scaled(normal, compressed(_along(gamma, axes, len(x.shape))), x.shape)


def _normal(vector: Affine, axes: tuple[int, ...], epsilon: float) -> Affine:
    """``v / sqrt(mean v^2 + epsilon)``: sqrt(n) times the vector of length 1."""
    count = prod(vector.shape[axis] for axis in axes)
    unit = whole(Unit(vector, axes, epsilon * count))
    return scaled(unit, np.asarray(sqrt(count)), vector.shape)


def _along(quantity: Quantity, axes: tuple[int, ...], rank: int) -> Reals:
    """A known array over the normalized axes, shaped to broadcast."""
    array = value_of(quantity)
    if array is None:
        raise UnsupportedOperator(
            "a normalization whose scale or bias is computed", remedy="export constant ones"
        )
    shape = [1] * rank
    for axis, extent in zip(axes, array.shape, strict=True):
        shape[axis] = extent
    return array.reshape(shape)


TRANSLATIONS: dict[str, Translation] = {
    "relax.nn.layer_norm": layer_norm,
    "relax.nn.rms_norm": rms_norm,
}
ONNX_OPERATORS = {"LayerNormalization", "RMSNormalization", "InstanceNormalization"}
