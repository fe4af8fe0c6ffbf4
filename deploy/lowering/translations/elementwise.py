"""Arithmetic element by element: affine while it can be, else a composite of affine quantities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isinf
from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.composing import tabled, whole
from entrain.deploy.lowering.composites.clipped import Clipped
from entrain.deploy.lowering.composites.function import Function
from entrain.deploy.lowering.composites.product import Product
from entrain.deploy.lowering.composites.ratio import OverRoot, Ratio, Root
from entrain.deploy.lowering.integers import interval_of
from entrain.deploy.lowering.quantity import (
    Affine,
    Part,
    Quantity,
    Reals,
    Term,
    compressed,
    known,
    sole_part,
    value_of,
)
from entrain.deploy.lowering.translations.contract import Translation, result_shape
from entrain.deploy.lowering.translations.shares import written_out
from entrain.deploy.lowering.translations.vectors import over_length, radicand_below

LARGEST_EXPONENT = 8


def summand(quantity: Quantity) -> Affine:
    """The quantity without bounds of its own, so that others may be added to it."""
    array = value_of(quantity)
    if array is not None:
        return known(array)
    return whole(Clipped(quantity)) if quantity.clipped else quantity


def sum_of(a: Quantity, b: Quantity, shape: tuple[int, ...]) -> Affine:
    """Terms and parts side by side."""
    one, two = summand(a), summand(b)
    constant = compressed(np.asarray(one.constant + two.constant))
    total = Affine(one.terms + two.terms, constant, shape, parts=one.parts + two.parts)
    return tabled(total) if len(total.scales) > 1 else total


def scaled(quantity: Quantity, factor: Reals, shape: tuple[int, ...]) -> Affine:
    """The quantity times a known factor; only even and positive ones leave bounds as they are."""
    array = value_of(quantity)
    if array is not None:
        return known(np.broadcast_to(array * factor, shape))
    low, high = quantity.low, quantity.high
    if quantity.clipped:
        # a factor that differs along an axis leaves only the bounds 0 and infinity as they are
        steady = factor.size == 1 or all(bound == 0 or isinf(bound) for bound in (low, high))
        if not steady or not (factor > 0).all():
            return scaled(summand(quantity), factor, shape)
        largest = float(factor.max())
        low, high = low * largest, high * largest
    if not factor.any():
        return known(np.zeros(shape))
    terms = tuple(Term(t.node, t.scale * factor) for t in quantity.terms)
    parts = tuple(Part(p.composite, p.scale * factor) for p in quantity.parts)
    return Affine(terms, quantity.constant * factor, shape, low, high, parts)


def product_of(a: Quantity, b: Quantity, shape: tuple[int, ...]) -> Affine:
    """A known factor goes into the scales; ``x / sqrt(y)`` is found in ``x * (1 / sqrt(y))``."""
    for quantity, other in ((a, b), (b, a)):
        factor = value_of(other)
        if factor is not None:
            return scaled(quantity, compressed(factor), shape)
    for quantity, other in ((a, b), (b, a)):
        part = sole_part(other)
        if part is not None and isinstance(part.composite, OverRoot):
            numerator = value_of(part.composite.numerator)
            if numerator is not None:
                above = scaled(quantity, compressed(numerator * part.scale), shape)
                return quotient_of(above, whole(Root(part.composite.radicand)), shape)
    return whole(Product(a, b))


def quotient_of(a: Quantity, b: Quantity, shape: tuple[int, ...]) -> Affine:
    """By a known divisor a scaling; by a length a vector of length 1; a softmax; else a ratio."""
    divisor = value_of(b)
    if divisor is not None:
        if not divisor.all():
            raise UnsupportedOperator("a division by the constant 0", remedy="correct the model")
        return scaled(a, compressed(1.0 / divisor), shape)
    for recognised in (over_length(a, b), written_out(a, b)):
        if recognised is not None:
            quotient, factor = recognised
            return scaled(quotient, np.asarray(factor), shape)
    below = radicand_below(b)
    if below is not None and not b.clipped:
        radicand, scale = below
        return scaled(whole(OverRoot(a, radicand)), np.asarray(1.0 / scale), shape)
    return whole(Ratio(a, b))


def rectified(quantity: Quantity) -> Affine:
    """max(x, 0)."""
    return clipped(quantity, 0.0, inf)


def clipped(quantity: Quantity, low: float, high: float) -> Affine:
    """The quantity within bounds, and within those that it has."""
    return replace(
        quantity,
        low=min(max(quantity.low, low), high),
        high=min(max(quantity.high, low), high),
    )


def add(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Terms side by side."""
    a, b = operands
    return sum_of(a, b, result_shape(call))


def subtract(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Adds the negative."""
    a, b = operands
    return sum_of(a, scaled(b, np.asarray(-1.0), b.shape), result_shape(call))


def multiply(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """A known factor goes into the scales; two tensors are a product."""
    a, b = operands
    return product_of(a, b, result_shape(call))


def divide(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """A scaling, a vector of length 1, or a ratio."""
    a, b = operands
    return quotient_of(a, b, result_shape(call))


def negate(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Times -1."""
    return scaled(operands[0], np.asarray(-1.0), result_shape(call))


def absolute(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """2 max(x, 0) - x, which is never negative."""
    shape, x = result_shape(call), summand(operands[0])
    twice = scaled(summand(rectified(x)), np.asarray(2.0), shape)
    largest = max(map(abs, interval_of(x)))
    return clipped(sum_of(twice, scaled(x, np.asarray(-1.0), shape), shape), 0.0, largest)


def square_root(_call: Any, operands: Sequence[Quantity]) -> Quantity:
    """A composite that a division may still take apart."""
    return whole(Root(operands[0]))


def inverse_root(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """1 over the root."""
    return quotient_of(known(np.ones(())), whole(Root(operands[0])), result_shape(call))


def square(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Times itself."""
    return product_of(operands[0], operands[0], result_shape(call))


def power(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """A whole exponent by multiplication, a half by a root, any other as a function."""
    base, shape = operands[0], result_shape(call)
    array, number = value_of(operands[1]), value_of(base)
    if array is None and number is not None and number.size == 1 and number.item() > 0.0:
        return whole(Function(scaled(operands[1], np.log(number.reshape(())), shape), np.exp))
    if array is None or array.size != 1:
        raise UnsupportedOperator(
            "a power whose exponent is not one known number",
            remedy="use one exponent for the whole tensor",
        )
    exponent = float(array.item())
    if exponent < 0.0:
        return quotient_of(known(np.ones(())), _positive_power(base, -exponent, shape), shape)
    return _positive_power(base, exponent, shape)


def _positive_power(base: Quantity, exponent: float, shape: tuple[int, ...]) -> Affine:
    if exponent == 0.5:
        return whole(Root(base))
    if exponent != int(exponent) or not 1 <= exponent <= LARGEST_EXPONENT:
        if interval_of(base)[0] < 0.0 and exponent != int(exponent):
            raise UnsupportedOperator(
                f"the power {exponent:g} of what may be negative",
                remedy="clip the base at 0, or use a whole exponent",
            )
        return whole(Function(base, lambda x: np.power(x, exponent)))
    result = base
    for _ in range(int(exponent) - 1):
        result = product_of(result, base, shape)
    return result


def rectify(_call: Any, operands: Sequence[Quantity]) -> Quantity:
    """ReLU: the requantization's lower bound."""
    return rectified(operands[0])


def leaky(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """``slope x + (1 - slope) max(x, 0)``."""
    return _two_slopes(operands[0], np.asarray(float(call.attrs.alpha)), result_shape(call))


def parametric(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """The same with a known slope for each channel."""
    slopes, shape = value_of(operands[1]), result_shape(call)
    if slopes is None:
        raise UnsupportedOperator("a PRelu with a computed slope", remedy="use constant slopes")
    axis = int(call.attrs.axis) % len(shape)
    aligned = slopes.reshape((-1, *(1,) * (len(shape) - 1 - axis)))
    return _two_slopes(operands[0], compressed(aligned), shape)


def _two_slopes(x: Quantity, slope: Reals, shape: tuple[int, ...]) -> Affine:
    above = scaled(summand(rectified(x)), 1.0 - slope, shape)
    return sum_of(above, scaled(summand(x), slope, shape), shape)


def maximum(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """The lower bound of a Clip; of two tensors ``a + max(b - a, 0)``."""
    x, bound = _with_bound(operands)
    if bound is not None:
        return clipped(x, bound, inf)
    a, b = operands
    return larger_of(a, b, result_shape(call))


def minimum(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """The upper bound of a Clip; of two tensors ``-max(-a, -b)``."""
    x, bound = _with_bound(operands)
    if bound is not None:
        return clipped(x, -inf, bound)
    shape, minus = result_shape(call), np.asarray(-1.0)
    a, b = (scaled(operand, minus, operand.shape) for operand in operands)
    return scaled(larger_of(a, b, shape), minus, shape)


def larger_of(a: Quantity, b: Quantity, shape: tuple[int, ...]) -> Affine:
    """``a + max(b - a, 0)``."""
    rise = sum_of(b, scaled(a, np.asarray(-1.0), a.shape), shape)
    return sum_of(a, rectified(rise), shape)


def _with_bound(operands: Sequence[Quantity]) -> tuple[Quantity, float | None]:
    """One operand, and the single number that the other one is, if it is that."""
    a, b = operands
    for quantity, other in ((a, b), (b, a)):
        bound = value_of(other)
        if bound is not None and bound.size == 1 and len(other.shape) <= len(quantity.shape):
            return quantity, float(bound.item())
    return a, None


def clip(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Between two numbers."""
    low, high = (float(argument.value) for argument in call.args[1:3])
    return clipped(operands[0], low, high)


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
    "relax.rsqrt": inverse_root,
    "relax.square": square,
    "relax.power": power,
    "relax.nn.relu": rectify,
    "relax.nn.leakyrelu": leaky,
    "relax.nn.prelu": parametric,
    "relax.maximum": maximum,
    "relax.minimum": minimum,
    "maximum": maximum,
    "minimum": minimum,
    "relax.clip": clip,
    "relax.isnan": is_nan,
}
ONNX_OPERATORS = {
    *("Add", "Sub", "Mul", "Div", "Neg", "Abs", "Reciprocal", "Pow", "Sqrt"),
    *("Relu", "LeakyRelu", "PRelu", "Clip"),
}
