"""Quotients in integers: one 32-bit division a row, then a multiplication and a shift each.

``c * numerator / d`` with a real constant c and one d for many numerators becomes
``(numerator * f + 2**(shift-1)) >> shift`` where only f depends on d. The C of this is
``firmware/kernels/entrain_division.h``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic.requantization import IntArray

Integers = NDArray[np.int64]

RECIPROCAL_ERROR = 2.0**-15
LARGEST_DENOMINATOR = 2**31 - 1
MULTIPLIER_BITS = 15
SMALLEST_SHIFT = 33
LARGEST_SHIFT = 54


def leading_zeros(x: IntArray) -> Integers:
    """How many of the 32 bits of x stand above its highest 1; x positive."""
    return 32 - np.frexp(np.asarray(x, np.float64))[1].astype(np.int64)


def reciprocal(d: IntArray) -> tuple[Integers, Integers]:
    """``1/d`` as ``r * 2**(n - 48)``.

    d is taken to 16 bits, ``top``, and r is ``(2**32 - 1) // top``. Cutting d makes the result
    too large by less than 2**-15; the division makes it too small by 2**-16 at most.

    Args:
        d: positive integers below 2**31.

    Returns:
        r, of 17 bits: 2**16 < r < 2**17; and n, the leading zeros of d, from 1 to 31.

    Raises:
        OverflowError: a d out of range.
    """
    denominators = np.asarray(d, np.int64)
    _within(denominators, 1, LARGEST_DENOMINATOR, "a denominator")
    zeros = leading_zeros(denominators)
    top = (denominators << zeros) >> np.int64(16)
    return np.int64(2**32 - 1) // top, zeros


@dataclass(frozen=True)
class Quotient:
    """``factor * numerator / d`` in integers; made by :func:`quotient`.

    Attributes:
        multiplier: the factor's 15 bits.
        drop: ``f = (r * multiplier) >> (drop - n)``, which is below 2**31.
        shift: ``(numerator * f + 2**(shift-1)) >> shift``; 33 or more, so that the high words of
            the products are enough: ``(mulhi(numerator, f) + 2**(shift-33)) >> (shift-32)``; and
            54 or less, so that an 8-bit zero point can be added to them before they are shifted.
        least: smallest d.
        most: largest d.
    """

    multiplier: int
    drop: int
    shift: int
    least: int
    most: int

    @property
    def relative_error(self) -> float:
        """Bound on how far ``f / 2**shift`` is from ``factor / d``, relative to it.

        The reciprocal's, half a step of the multiplier, and the bits that the shift of f drops.
        """
        deepest = self.drop - int(leading_zeros(np.asarray(self.most)))
        cut = 2.0 ** (deepest - 16) / self.multiplier
        return (1 + RECIPROCAL_ERROR) * (1 + 0.5 / self.multiplier) * (1 + cut) - 1

    def factor(self, d: IntArray) -> Integers:
        """The factor f for each d: ``f / 2**shift`` is about ``factor / d``.

        Raises:
            OverflowError: a d out of range.
        """
        denominators = np.asarray(d, np.int64)
        _within(denominators, self.least, self.most, "a denominator")
        r, zeros = reciprocal(denominators)
        product = r * np.int64(self.multiplier)
        _within(product, 0, 2**32 - 1, "a reciprocal times its multiplier")
        f: Integers = product >> (np.int64(self.drop) - zeros)
        _within(f, 0, 2**31 - 1, "a row's factor")
        return f

    def divide(self, numerator: IntArray, f: IntArray) -> Integers:
        """The nearest integers of ``factor * numerator / d``, halves upwards.

        Args:
            numerator: 32-bit integers.
            f: from :meth:`factor`, a shape that broadcasts.

        Raises:
            OverflowError: a numerator out of range.
        """
        numerators = np.asarray(numerator, np.int64)
        _within(numerators, -(2**31), 2**31 - 1, "a numerator")
        half = np.int64(1) << np.int64(self.shift - 1)
        quotients: Integers = (numerators * np.asarray(f, np.int64) + half) >> np.int64(self.shift)
        return quotients


def quotient(factor: float, least: int, most: int) -> Quotient:
    """Integers for ``factor * numerator / d`` with d from ``least`` to ``most``.

    Args:
        factor: a real constant, > 0.
        least: smallest denominator, 1 or more.
        most: largest denominator, below 2**31.

    Raises:
        OverflowError: the factor is too large against the denominators (the numerators need more
            fractional bits), or too small; or the denominators are out of range.
    """
    if not 1 <= least <= most <= LARGEST_DENOMINATOR:
        raise OverflowError(f"denominators from {least} to {most}")
    multiplier, exponent = _mantissa(factor)
    # at the smallest d, which has the most leading zeros, f has 30 bits or 31
    drop = 1 + int(leading_zeros(np.asarray(least)))
    shift = 48 + exponent - drop
    surplus = max(0, shift - LARGEST_SHIFT)
    drop, shift = drop + surplus, shift - surplus
    if shift < SMALLEST_SHIFT or drop - int(leading_zeros(np.asarray(most))) > 31:
        raise OverflowError(f"a factor of {factor:.3g} with denominators from {least} to {most}")
    return Quotient(multiplier, drop, shift, least, most)


def _mantissa(factor: float) -> tuple[int, int]:
    """``factor = multiplier / 2**exponent`` with 2**14 <= multiplier < 2**15."""
    fraction, power = frexp(factor)
    multiplier = round(fraction * 2**MULTIPLIER_BITS)
    if multiplier == 2**MULTIPLIER_BITS:
        multiplier, power = multiplier // 2, power + 1
    return multiplier, MULTIPLIER_BITS - power


def _within(numbers: Integers, low: int, high: int, what: str) -> None:
    """Raise OverflowError unless all lie in a range that was proved for them."""
    if numbers.size and (numbers.min() < low or numbers.max() > high):
        raise OverflowError(f"{what} from {numbers.min()} to {numbers.max()}")
