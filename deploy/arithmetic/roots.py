"""Inverse square roots in integers, by Newton's iteration: multiplications and shifts alone.

The C of this is ``firmware/kernels/entrain_roots.h``.
"""

from __future__ import annotations

import numpy as np

from entrain.deploy.arithmetic.division import Integers
from entrain.deploy.arithmetic.requantization import IntArray

RECIPROCAL_ROOT_ERROR = 2.0**-15.9
ITERATIONS = 3

# 1/sqrt(x) is within 8.6 % of START - SLOPE * x for x from 1/4 to 1, in 2**-30
_START = round(2.1327 * 2**30)
_SLOPE = round(1.2187 * 2**30)
_THREE = 3 << 28


def reciprocal_root(s: IntArray) -> tuple[Integers, Integers]:
    """``1/sqrt(s)`` as ``r * 2**-e``, within :data:`RECIPROCAL_ROOT_ERROR` relative.

    s is shifted by an even number of bits to ``m``, 32 bits of which one of the highest two is
    set, and y = 1/sqrt(m / 2**32), between 1 and 2, is held in 30 bits of fraction. Newton's
    ``y (3 - x y^2) / 2`` takes the error 0.086 to 0.0114, 2e-4 and 6e-8; the shifts drop about
    2**-26 more.

    Args:
        s: positive integers below 2**63.

    Returns:
        r, from 2**15 to 2**16; and e, from 16 to 47.

    Raises:
        OverflowError: an s out of range.
    """
    squares = np.asarray(s, np.int64)
    if squares.size and squares.min() < 1:
        raise OverflowError(f"an inverse square root of {squares.min()}")
    even = _leading_zeros(squares) & ~np.int64(1)
    m = (squares.astype(np.uint64) << even.astype(np.uint64)) >> np.uint64(32)
    y = np.uint64(_START) - _high(np.uint64(_SLOPE), m)
    for _ in range(ITERATIONS):
        nearly_one = _high(_high(y, m), y)
        y = _high(y, np.uint64(_THREE) - nearly_one) << np.uint64(3)
    r = ((y + np.uint64(1 << 14)) >> np.uint64(15)).astype(np.int64)
    if r.size and (r.min() < 2**15 or r.max() > 2**16):
        raise OverflowError(f"an inverse square root from {r.min()} to {r.max()}")
    return r, 47 - (even >> np.int64(1))


def _high(a: IntArray | np.uint64, b: IntArray) -> IntArray:
    """The high word of a product of two 32-bit words."""
    product: IntArray = (a * b) >> np.uint64(32)
    return product


def _leading_zeros(x: Integers) -> Integers:
    """How many of 64 bits stand above the highest 1."""
    high, low = x >> np.int64(32), x & np.int64(0xFFFFFFFF)
    bits = np.where(high > 0, 32 + _bits(high), _bits(low))
    return 64 - bits


def _bits(x: Integers) -> Integers:
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)
