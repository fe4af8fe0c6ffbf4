"""Quotients whose divisor may have any size: a factor with a binary exponent for each divisor.

:func:`entrain.deploy.arithmetic.quotient` is quicker where the range of the divisors is known and
small. Here a factor is one int32, ``mantissa * 2**EXPONENT_BITS + exponent + EXPONENT_BIAS``, and
stands for ``mantissa * 2**-exponent``. The C of this is ``firmware/kernels/entrain_ratios.h``.

A division by zero has a meaning: the result saturates with the numerator's sign, and 0/0 is 0.
The inverse root of a negative number is 0, so that its square root is 0 too.
"""

from __future__ import annotations

import numpy as np

from entrain.deploy.arithmetic.division import RECIPROCAL_ERROR, Integers, reciprocal
from entrain.deploy.arithmetic.requantization import IntArray
from entrain.deploy.arithmetic.roots import RECIPROCAL_ROOT_ERROR, reciprocal_root

EXPONENT_BITS = 6
EXPONENT_BIAS = 15
LARGEST_MANTISSA = 2**17 - 1
FACTOR_ERROR = max(RECIPROCAL_ERROR, RECIPROCAL_ROOT_ERROR)  # relative
LARGEST_FRACTION = 60
LARGEST_LIMIT = 2**30
_LARGEST_RIGHT, _LARGEST_LEFT = 62, 31


def reciprocal_factor(d: IntArray) -> Integers:
    """The factor of 1/d for signed integers above -2**31; that of 1/0 is nearly 2**32."""
    divisors = np.asarray(d, np.int64)
    r, zeros = reciprocal(np.maximum(np.abs(divisors), 1))
    mantissa = np.where(divisors == 0, LARGEST_MANTISSA, np.where(divisors < 0, -r, r))
    return _factor(mantissa, np.where(divisors == 0, -EXPONENT_BIAS, 48 - zeros))


def root_factor(s: IntArray) -> Integers:
    """The factor of 1/sqrt(s) for integers below 2**63; that of a negative s is 0."""
    squares = np.asarray(s, np.int64)
    r, exponent = reciprocal_root(np.maximum(squares, 1))
    mantissa = np.where(squares > 0, r, np.where(squares == 0, LARGEST_MANTISSA, 0))
    return _factor(mantissa, np.where(squares > 0, exponent, -EXPONENT_BIAS))


def _factor(mantissa: Integers, exponent: Integers) -> Integers:
    return (mantissa << np.int64(EXPONENT_BITS)) + exponent + EXPONENT_BIAS


def scaled(numerator: IntArray, factor: IntArray, *, fraction: int, limit: int) -> Integers:
    """``numerator * factor`` with ``fraction`` binary places, saturated at plus and minus limit.

    To nearest, halves upwards. The product has 48 bits at most.

    Args:
        numerator: 32-bit integers.
        factor: of :func:`reciprocal_factor` or :func:`root_factor`, a shape that broadcasts.
        fraction: from 0 to ``LARGEST_FRACTION``.
        limit: up to ``LARGEST_LIMIT``.

    Raises:
        OverflowError: an argument out of range.
    """
    if not (0 <= fraction <= LARGEST_FRACTION and 0 < limit <= LARGEST_LIMIT):
        raise OverflowError(f"{fraction} binary places, limit {limit}")
    numerators, factors = np.asarray(numerator, np.int64), np.asarray(factor, np.int64)
    product = numerators * (factors >> np.int64(EXPONENT_BITS))
    if product.size and np.abs(product).max() > 2**48:
        raise OverflowError(f"a product of {np.abs(product).max()}")
    shift = (factors & np.int64(2**EXPONENT_BITS - 1)) - EXPONENT_BIAS - fraction
    right, left = np.clip(shift, 1, _LARGEST_RIGHT), np.clip(-shift, 0, _LARGEST_LEFT)
    lowered = (product + (np.int64(1) << (right - 1))) >> right
    raised = np.where(
        np.abs(product) > (np.int64(limit) >> left), np.sign(product) * limit, product << left
    )
    return np.clip(np.where(shift > 0, lowered, raised), -limit, limit)
