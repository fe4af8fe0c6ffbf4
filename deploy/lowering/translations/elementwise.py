"""Arithmetic element by element: affine while it can be, single precision where it must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isinf
from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import (
    ADD,
    DIVIDE,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
    SQUARE_ROOT,
    SUBTRACT,
)
from entrain.deploy.lowering.quantity import (
    Affine,
    Quantity,
    Real,
    Reals,
    Term,
    compressed,
    known,
    to_real,
    value_of,
)
from entrain.deploy.lowering.translations.contract import Translation, result_shape

LARGEST_EXPONENT = 8


def _folded(quantity: Quantity) -> Quantity:
    """A quantity known when lowering as a bare constant."""
    array = value_of(quantity)
    return quantity if array is None else known(array)


def add(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Terms side by side."""
    a, b = (_folded(operand) for operand in operands)
    if isinstance(a, Affine) and isinstance(b, Affine) and not (a.clipped or b.clipped):
        total = compressed(np.asarray(a.constant + b.constant))
        return Affine(a.terms + b.terms, total, result_shape(call))
    return Real(apply(ADD, to_real(a), to_real(b)))


def subtract(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Adds the negative."""
    a, b = (_folded(operand) for operand in operands)
    negative = _scaled(b, np.asarray(-1.0), b.shape)
    if negative is not None:
        return add(call, (a, negative))
    return Real(apply(SUBTRACT, to_real(a), to_real(b)))


def multiply(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """A known factor goes into the scales."""
    a, b = (_folded(operand) for operand in operands)
    for quantity, other in ((a, b), (b, a)):
        factor = value_of(other)
        if factor is not None:
            scaled = _scaled(quantity, compressed(factor), result_shape(call))
            if scaled is not None:
                return scaled
    return Real(apply(MULTIPLY, to_real(a), to_real(b)))


def _scaled(quantity: Quantity, factor: Reals, shape: tuple[int, ...]) -> Affine | None:
    """The quantity times a known factor, if that is affine too."""
    if not isinstance(quantity, Affine):
        return None
    low, high = quantity.low, quantity.high
    if quantity.clipped:
        # a factor that differs along an axis leaves only the bounds 0 and infinity as they are
        steady = factor.size == 1 or all(bound == 0 or isinf(bound) for bound in (low, high))
        if not steady or not (factor > 0).all():
            return None
        largest = float(factor.max())
        low, high = low * largest, high * largest
    terms = tuple(Term(t.node, t.scale * factor) for t in quantity.terms) if factor.any() else ()
    return Affine(terms, quantity.constant * factor, shape, low, high)


def divide(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """By a known divisor: a scaling."""
    divisor = value_of(operands[1])
    if divisor is None:
        return Real(apply(DIVIDE, to_real(operands[0]), to_real(operands[1])))
    if not divisor.all():
        raise UnsupportedOperator("a division by the constant 0", remedy="correct the model")
    return multiply(call, (operands[0], known(1.0 / divisor)))


def negate(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Times -1."""
    return multiply(call, (operands[0], known(np.asarray(-1.0))))


def absolute(_call: Any, operands: Sequence[Quantity]) -> Quantity:
    """The larger of x and -x."""
    node = to_real(operands[0])
    minus = constant(np.asarray(-1.0, np.float32))
    return Real(apply(MAXIMUM, node, apply(MULTIPLY, node, minus)))


def square_root(_call: Any, operands: Sequence[Quantity]) -> Quantity:
    """In single precision, correctly rounded."""
    return Real(apply(SQUARE_ROOT, to_real(operands[0])))


def power(_call: Any, operands: Sequence[Quantity]) -> Quantity:
    """A whole exponent from 1 to 8, as repeated multiplication."""
    exponent = value_of(operands[1])
    allowed = range(1, LARGEST_EXPONENT + 1)
    if exponent is None or exponent.size != 1 or exponent.item() not in allowed:
        raise UnsupportedOperator(
            f"a power whose exponent is not a whole number from 1 to {LARGEST_EXPONENT}",
            remedy="use a whole exponent in the model that is deployed",
        )
    if exponent.item() == 1:
        return operands[0]
    base = to_real(operands[0])
    result = base
    for _ in range(int(exponent.item()) - 1):
        result = apply(MULTIPLY, result, base)
    return Real(result)


def rectify(_call: Any, operands: Sequence[Quantity]) -> Quantity:
    """ReLU: the requantization's lower bound."""
    return _clipped(operands[0], 0.0, inf)


def maximum(_call: Any, operands: Sequence[Quantity]) -> Quantity:
    """The lower bound of a Clip, or the larger of two tensors."""
    x, bound = _with_bound(operands)
    if bound is not None:
        return _clipped(x, bound, inf)
    return Real(apply(MAXIMUM, *map(to_real, operands)))


def minimum(_call: Any, operands: Sequence[Quantity]) -> Quantity:
    """The upper bound of a Clip, or the smaller of two tensors."""
    x, bound = _with_bound(operands)
    if bound is not None:
        return _clipped(x, -inf, bound)
    return Real(apply(MINIMUM, *map(to_real, operands)))


def _with_bound(operands: Sequence[Quantity]) -> tuple[Quantity, float | None]:
    """One operand, and the single number that the other one is, if it is that."""
    a, b = operands
    for quantity, other in ((a, b), (b, a)):
        bound = value_of(other)
        if bound is not None and bound.size == 1 and len(other.shape) <= len(quantity.shape):
            return quantity, float(bound.item())
    return a, None


def _clipped(quantity: Quantity, low: float, high: float) -> Quantity:
    if isinstance(quantity, Affine):
        return replace(
            quantity,
            low=min(max(quantity.low, low), high),
            high=min(max(quantity.high, low), high),
        )
    node = quantity.node
    if not isinf(low):
        node = apply(MAXIMUM, node, constant(np.asarray(low, np.float32)))
    if not isinf(high):
        node = apply(MINIMUM, node, constant(np.asarray(high, np.float32)))
    return Real(node)


def is_nan(_call: Any, operands: Sequence[Quantity]) -> Quantity:
    """How TVM's importer treats the bounds of a Clip: known when lowering, or not at all."""
    bound = value_of(operands[0])
    if bound is None:
        raise UnsupportedOperator("a comparison of tensors", remedy="export it without")
    return known(np.isnan(bound))


TRANSLATIONS: dict[str, Translation] = {
    "relax.add": add,
    "relax.subtract": subtract,
    "relax.multiply": multiply,
    "relax.divide": divide,
    "relax.negative": negate,
    "relax.abs": absolute,
    "relax.sqrt": square_root,
    "relax.power": power,
    "relax.nn.relu": rectify,
    "relax.maximum": maximum,
    "relax.minimum": minimum,
    "maximum": maximum,
    "minimum": minimum,
    "relax.isnan": is_nan,
}
ONNX_OPERATORS = {
    *("Add", "Sub", "Mul", "Div", "Neg", "Abs", "Reciprocal", "Relu", "Pow", "Clip", "Sqrt")
}
