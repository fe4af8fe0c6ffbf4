"""Functions of one number, which become tables, and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, pi, sqrt
from typing import Any

import numpy as np
from scipy import special

from entrain.deploy.lowering.composing import whole
from entrain.deploy.lowering.composites.function import Function
from entrain.deploy.lowering.one_source import Formula
from entrain.deploy.lowering.quantity import Quantity, Reals, sole_part
from entrain.deploy.lowering.translations.contract import Translation
from entrain.deploy.lowering.translations.elementwise import clipped, scaled, sum_of
from entrain.deploy.lowering.translations.shares import below_peak, exponents_of, softmax_of


def softmax(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Along one axis."""
    return softmax_of(operands[0], _axes(call, operands[0]))


def log_softmax(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """``x - peak - log sum exp(x - peak)``; the sum is 1 at least."""
    axes = _axes(call, operands[0])
    below = below_peak(operands[0], axes)
    _, total = exponents_of(below, axes)
    logarithm = whole(Function(clipped(total, 1.0, inf), np.log))
    return sum_of(below, scaled(logarithm, np.asarray(-1.0), logarithm.shape), below.shape)


def _axes(call: Any, quantity: Quantity) -> tuple[int, ...]:
    return (int(call.attrs.axis) % len(quantity.shape),)


def _gelu(x: Reals) -> Reals:
    """X times the normal distribution's probability of less than x."""
    gated: Reals = x * special.ndtr(x)
    return gated


def _gelu_by_tanh(x: Reals) -> Reals:
    gated: Reals = 0.5 * x * (1.0 + np.tanh(sqrt(2.0 / pi) * (x + 0.044715 * x**3)))
    return gated


def _softplus(x: Reals) -> Reals:
    return np.logaddexp(0.0, x)


def _silu(x: Reals) -> Reals:
    gated: Reals = x * special.expit(x)
    return gated


def logarithm(_call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Of 1 + exp(x), as a Softplus arrives, without the exponential that grows too large."""
    (operand,) = operands
    part = sole_part(replace(operand, constant=operand.constant - 1.0))
    if part is not None and isinstance(part.composite, Function):
        exponential = part.composite.formula is np.exp and part.scale.item() == 1.0
        if exponential:
            return whole(Function(part.composite.operand, _softplus))
    return whole(Function(operand, np.log))


def _function(formula: Formula) -> Translation:
    def translate(_call: Any, operands: Sequence[Quantity]) -> Quantity:
        return whole(Function(operands[0], formula))

    return translate


TRANSLATIONS: dict[str, Translation] = {
    "relax.nn.softmax": softmax,
    "relax.nn.log_softmax": log_softmax,
    "relax.nn.softplus": _function(_softplus),
    "relax.nn.gelu": _function(_gelu),
    "relax.nn.gelu_tanh": _function(_gelu_by_tanh),
    "relax.nn.silu": _function(_silu),
    "relax.sigmoid": _function(special.expit),
    "relax.tanh": _function(np.tanh),
    "relax.erf": _function(special.erf),
    "relax.exp": _function(np.exp),
    "relax.log": logarithm,
    "relax.sin": _function(np.sin),
    "relax.cos": _function(np.cos),
}
ONNX_OPERATORS = {
    *("Softmax", "LogSoftmax", "Softplus", "Gelu", "Sigmoid", "Tanh", "Erf", "Exp", "Log"),
    *("Sin", "Cos", "HardSwish", "HardSigmoid", "Elu", "Selu", "Mish", "Softsign"),
}
