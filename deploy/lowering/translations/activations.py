"""Softmax by an exponent table, and functions that a table of the whole layer will hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import (
    DIVIDE,
    ERROR_FUNCTION,
    EXPONENTIAL,
    LOGARITHM,
    SIGMOID,
    SOFTPLUS,
    SUBTRACT_INTEGERS,
    TANH,
    TO_REAL,
    Elementwise,
)
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.operators.reduction import Peak, Sum
from entrain.deploy.lowering.quantity import Quantity, Real, Term, sole_term, to_real
from entrain.deploy.lowering.translations.contract import Translation

EXPONENT_ONE = 1 << 16  # what exp(0) is in the table; 2**14 of them still fit in an int32 sum
TABLE_SIZE = 256


def _eight_bits(quantity: Quantity) -> Term:
    """The tensor of at most 256 different integers that the quantity is."""
    term = sole_term(quantity)
    if term is not None and term.scale.size == 1:
        low, high = term.node.interval
        if high - low < TABLE_SIZE:
            return term
    raise UnsupportedOperator(
        "Softmax of a tensor that is not 8 bits wide", remedy="quantize its operand per tensor"
    )


def softmax(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """``exp(x_j - peak) / sum_l exp(x_l - peak)``: a difference of integers indexes the table."""
    term = _eight_bits(operands[0])
    axis = int(call.attrs.axis) % len(operands[0].shape)
    steps = np.arange(TABLE_SIZE)
    table = np.rint(EXPONENT_ONE * np.exp(-term.scale.item() * steps)).astype(np.int32)
    below = apply(SUBTRACT_INTEGERS, apply(Peak((axis,)), term.node), term.node)
    exponents = apply(Lookup(), below, constant(table))
    total = apply(Sum((axis,), "int32"), exponents)
    return Real(apply(DIVIDE, apply(TO_REAL, exponents), apply(TO_REAL, total)))


def _function(operator: Elementwise) -> Translation:
    def translate(_call: Any, operands: Sequence[Quantity]) -> Quantity:
        return Real(apply(operator, to_real(operands[0])))

    return translate


TRANSLATIONS: dict[str, Translation] = {
    "relax.nn.softmax": softmax,
    "relax.nn.softplus": _function(SOFTPLUS),
    "relax.sigmoid": _function(SIGMOID),
    "relax.tanh": _function(TANH),
    "relax.erf": _function(ERROR_FUNCTION),
    "relax.exp": _function(EXPONENTIAL),
    "relax.log": _function(LOGARITHM),
}
ONNX_OPERATORS = {"Softmax", "Softplus", "Sigmoid", "Tanh", "Erf", "Exp", "Log"}
