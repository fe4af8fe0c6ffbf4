"""From reals to integers and back, and from wide integers to 8 bits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[Any]
RealArray = NDArray[np.float64]

MULTIPLIER_BITS = 30
BIAS_BITS = 30
TOTAL_BITS = 61
LARGEST_SHIFT = 62
LARGEST_RESULT = float(2**29)
NARROW_BITS = 31
NARROW_ROOM = 256.0  # steps of the result: its zero point, one half, and the roundings
NARROW_LOSS = 2.0**-9  # of a step of the result
MOST_COMPARED = 2**19  # combinations of operands whose every result is computed, to choose


def integer_range(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type, by its numpy name."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def quantize(x: NDArray[Any], scale: float, zero_point: int, dtype: str) -> IntArray:
    """Nearest integers of x, ties to even, saturated: ONNX's QuantizeLinear.

    The division is IEEE single precision, as onnxruntime does it.

    Args:
        x: real values, any shape.
        scale: width of one step, > 0.
        zero_point: the integer that stands for 0.
        dtype: ``int8`` or ``uint8``.
    """
    low, high = integer_range(dtype)
    steps = np.rint(np.asarray(x, np.float32) / np.float32(scale))
    clipped: IntArray = np.clip(steps + zero_point, low, high)
    return clipped.astype(dtype)


def dequantize(q: IntArray, scale: float, zero_point: int) -> NDArray[np.float32]:
    """The reals that the integers q stand for: ONNX's DequantizeLinear."""
    return (q.astype(np.float32) - np.float32(zero_point)) * np.float32(scale)


@dataclass(frozen=True)
class FixedPoint:
    """Real factors as integers: ``factor = multiplier / 2**shift``, one shift for all.

    ``bias = bias_integer * 2**(bias_shift - shift)`` is the real constant that is added.
    """

    multipliers: tuple[NDArray[np.int32], ...]
    bias: NDArray[np.int32]
    bias_shift: int
    shift: int


def fixed_point(
    factors: tuple[RealArray, ...], bias: RealArray, peaks: tuple[int, ...]
) -> FixedPoint:
    """Integers for ``sum_k factors[k] * x_k + bias``, as precise as 30 bits allow.

    The shift is the largest with every multiplier below 2**30, so the largest factor keeps 30
    bits; the bias gets the finest power of two that keeps it below 2**30. The 64-bit total stays
    below 2**62.

    Args:
        factors: real factors of each integer operand, arrays that broadcast to the result.
        bias: real constant, in steps of the result, an array that broadcasts to the result.
        peaks: largest magnitude of each integer operand.

    Raises:
        OverflowError: the result may not fit 32 bits; the message is how large it may get.
    """
    largest = max((_peak(factor) for factor in factors), default=0.0)
    reach = _reach(factors, bias, peaks)
    if not max(reach, largest) < LARGEST_RESULT:
        raise OverflowError(f"{max(reach, largest):.3g}")
    shift = min(
        LARGEST_SHIFT,
        MULTIPLIER_BITS - _bits(largest),
        TOTAL_BITS - _bits(reach),
    )
    return _with_shift(shift, factors, bias)


def narrow_fixed_point(
    factors: tuple[RealArray, ...], bias: RealArray, peaks: tuple[int, ...]
) -> FixedPoint | None:
    """Integers whose total fits 32 bits, zero point and one half included; None if too coarse.

    The shift s is the largest with ``reach + 256 < 2**(31 - s)``, where the reach is the largest
    magnitude that the sum may have, in steps of the result. Each multiplier and the bias is a unit
    of ``2**-s`` off at most, so together they move the result by ``(sum_k peaks[k] + 1) * 2**-s``
    of a step: for two operands of 8 bits and factors up to 1 by less than 2**-12. More than 2**-9
    is too coarse: where factors are large, and for wide operands.

    Args:
        factors: as for :func:`fixed_point`.
        bias: as for :func:`fixed_point`.
        peaks: as for :func:`fixed_point`.
    """
    reach = _reach(factors, bias, peaks)
    if not reach < LARGEST_RESULT:
        return None
    shift = NARROW_BITS - _bits(reach + NARROW_ROOM)
    if np.ldexp(sum(peaks) + 1.0, -shift) > NARROW_LOSS:
        return None
    nearest = _with_shift(shift, factors, bias)
    compared = prod(2 * peak + 1 for peak in peaks)
    if compared > MOST_COMPARED or any(array.size > 1 for array in (bias, *factors)):
        return nearest
    return _most_exact(nearest, factors, bias, peaks)


def _most_exact(
    nearest: FixedPoint, factors: tuple[RealArray, ...], bias: RealArray, peaks: tuple[int, ...]
) -> FixedPoint:
    """The same with each multiplier rounded down or up, whichever gives more results exactly.

    Where the steps of operands and result are nearly whole multiples of one number, as 0.03 and
    0.05 are, many sums lie next to a half, and what a multiplier is off decides all of them.
    """
    operands = np.ogrid[tuple(slice(-peak, peak + 1) for peak in peaks)]
    exact = np.asarray(bias.reshape(()))
    for factor, operand in zip(factors, operands, strict=True):
        exact = exact + factor.reshape(()) * operand
    exact = np.floor(exact + 0.5)

    def differing(fixed: FixedPoint) -> int:
        limit = int(LARGEST_RESULT)
        results = requantize(tuple(operands), fixed, zero_point=0, low=-limit, high=limit)
        return int((results != exact).sum())

    below = [np.floor(np.ldexp(factor, nearest.shift)).astype(np.int32) for factor in factors]
    above = [np.ceil(np.ldexp(factor, nearest.shift)).astype(np.int32) for factor in factors]
    choices = product(*zip(below, above, strict=True))
    candidates = [nearest, *(replace(nearest, multipliers=choice) for choice in choices)]
    return min(candidates, key=differing)


def _reach(factors: tuple[RealArray, ...], bias: RealArray, peaks: tuple[int, ...]) -> float:
    """The largest magnitude of the sum."""
    reach = _peak(bias)
    for factor, peak in zip(factors, peaks, strict=True):
        reach += peak * _peak(factor)
    return reach


def _with_shift(shift: int, factors: tuple[RealArray, ...], bias: RealArray) -> FixedPoint:
    """The nearest multipliers, and the bias as fine as 30 bits allow."""
    multipliers = tuple(np.rint(np.ldexp(factor, shift)).astype(np.int32) for factor in factors)
    fine = min(shift, BIAS_BITS - _bits(_peak(bias)))
    integers = np.rint(np.ldexp(bias, fine)).astype(np.int32)
    return FixedPoint(multipliers, integers, shift - fine, shift)


def _peak(array: RealArray) -> float:
    return float(np.abs(array).max(initial=0.0))


def _bits(x: float) -> int:
    """The smallest n with ``x < 2**n``; for 0, so few that 0 never decides."""
    return int(np.frexp(x)[1]) if x > 0.0 else -LARGEST_SHIFT


def requantize(
    operands: tuple[IntArray, ...],
    fixed: FixedPoint,
    *,
    zero_point: int,
    low: int,
    high: int,
) -> NDArray[np.int64]:
    """``clip(zero_point + round(sum_k multiplier_k * operand_k + bias))`` in 64-bit integers.

    Rounds to nearest, halves upwards: an arithmetic shift after adding one half. The C of this
    is ``entrain_requantize`` in firmware/kernels.

    Args:
        operands: int32 sums or integer tensors, shapes that broadcast.
        fixed: from :func:`fixed_point` or :func:`narrow_fixed_point`.
        zero_point: of the result.
        low: smallest value of the result; for a ReLU, the zero point.
        high: largest value of the result.
    """
    total = fixed.bias.astype(np.int64) << np.int64(fixed.bias_shift)
    for operand, multiplier in zip(operands, fixed.multipliers, strict=True):
        total = total + operand.astype(np.int64) * multiplier.astype(np.int64)
    half = np.int64(1) << np.int64(fixed.shift - 1)
    rounded: NDArray[np.int64] = (total + half) >> np.int64(fixed.shift)
    return np.clip(rounded + zero_point, low, high)
