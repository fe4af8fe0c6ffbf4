"""Settled oscillators in integers: ``z = h / |h|`` of int32 fields h, z in steps of 2**-14.

The oscillator of a token follows ``dz/dt = (I - z z^T) h`` and settles at ``h / |h|`` (Pasqualetti
and Guo 2026). Only the direction of h matters, so h is first shifted until its largest component
has 15 bits; then a polynomial and one step of third order give the inverse root of its squared
length. No division, no table, and every factor but one has 18 bits at most: one multiplier of an
FPGA, one instruction of a Cortex-M0.

What becomes of a field that is too small, see :class:`FieldStrength`. The C of this is
``firmware/kernels/entrain_settling.h``.
"""

from __future__ import annotations

from enum import IntEnum
from math import sqrt

import numpy as np

from entrain.deploy.arithmetic.division import Integers, leading_zeros
from entrain.deploy.arithmetic.ranges import within
from entrain.deploy.arithmetic.requantization import IntArray

STATE_BITS = 14
STATE_ONE = 1 << STATE_BITS
LARGEST_COMPONENTS = 64  # d_osc

# how far the inverse root is off, relative: over all its 49,153 arguments
INVERSE_ROOT_ERROR = 2.0**-15.1

# 1/sqrt(x) is within 2.5 % of C0 - C1 x + C2 x^2 for x from 1/4 to 1, in 2**-14. With e = 1 - x y^2
# the step y (1 + A e + 3/8 e^2) is the best of its form there, A in 2**-16.
_C0, _C1, _C2 = 43762, 53851, 26863
_A = 32800


class FieldStrength(IntEnum):
    """Whether a field's direction means anything.

    ``ZERO``: no field; the oscillator rests at z = 0 and reads out uniformly, as in PyTorch with
    its tiny epsilon. ``WEAK``: no component is larger than what rounding may have made; z is a unit
    vector, but of no certain direction. ``STRONG``: every other.
    """

    ZERO = 0
    WEAK = 1
    STRONG = 2


def field_strength(fields: IntArray, rounding: int) -> IntArray:
    """The :class:`FieldStrength` of each field, int8, of shape [...].

    Args:
        fields: h [..., d_osc], int32.
        rounding: how far rounding may have moved a component, in the units of h.
    """
    largest = np.abs(np.asarray(fields, np.int64)).max(axis=-1)
    weak = np.where(largest <= rounding, FieldStrength.WEAK, FieldStrength.STRONG)
    strengths: IntArray = np.where(largest == 0, FieldStrength.ZERO, weak).astype(np.int8)
    return strengths


def state_error(components: int) -> float:
    """Bound on a component's distance from the exact ``h / |h|`` of the integers h.

    Half a step each for rounding the component before and after, the length's error by rounding all
    d_osc components (half a step times the root of d_osc), and what the inverse root and its
    rounded argument are off (under 3/4 of a step). The shifted field is at least 2**14 long.
    """
    return float(1.75 + 0.5 * sqrt(components)) / STATE_ONE


def longest_state(components: int) -> float:
    """Bound on the length of a settled state in steps: its inverse root's error and rounding."""
    return float(STATE_ONE * (1 + INVERSE_ROOT_ERROR + 2.0**-15) + 0.5 * sqrt(components))


def square_guard(components: int) -> int:
    """By how many bits a sum of squares is shifted right so that it fits 32 bits; even.

    No component exceeds 2**15, so ``components * 2**(30 - guard) < 2**32``.
    """
    return next(guard for guard in (0, 2, 4, 6) if components < 2 ** (guard + 2))


def settle(fields: IntArray) -> Integers:
    """The settled states ``z = h / |h|`` in steps of 2**-14; 0 where h = 0.

    No component is further than :func:`state_error` from the exact one.

    Args:
        fields: h [..., d_osc], int32, with 1 to 64 components.

    Raises:
        OverflowError: a field, or an intermediate, leaves the range that was proved for it.
    """
    h = np.asarray(fields, np.int64)
    components = h.shape[-1]
    if not 1 <= components <= LARGEST_COMPONENTS:
        raise OverflowError(f"{components} components of a field")
    within(h, -(2**31), 2**31 - 1, "a field")
    guard = square_guard(components)
    a = normalised(h)
    s = ((a * a).sum(axis=-1, keepdims=True) >> np.int64(guard)) | 1
    within(s, 1, 2**32 - 1, "a squared length")
    even = leading_zeros(s) & ~np.int64(1)
    x = ((s << even >> np.int64(15)) + 1) >> np.int64(1)
    product = a * inverse_root(x)
    within(product, -(2**31), 2**31 - 1, "a component times the inverse length")
    # |a| = sqrt(x / 2**16) * 2**(16 + guard/2 - even/2); the inverse root has 15 bits of fraction
    shift = 17 + guard // 2 - (even >> np.int64(1))
    states = ((product >> (shift - 1)) + 1) >> np.int64(1)
    within(states, -STATE_ONE - 2, STATE_ONE + 2, "a settled state")
    return states


def normalised(h: Integers) -> Integers:
    """The field shifted so that its largest component has 15 bits, to nearest: at most 2**15."""
    # ~x for negative x: one bit pattern for both signs, and no overflow at -2**31
    magnitudes = np.bitwise_or.reduce(h ^ (h >> np.int64(63)), axis=-1, keepdims=True)
    left = leading_zeros(magnitudes | 1) - 1
    shifted = h << left
    within(shifted, -(2**31), 2**31 - 1, "a shifted field")
    a: Integers = ((shifted >> np.int64(15)) + 1) >> np.int64(1)
    within(a, -(2**15), 2**15, "a normalised component")
    return a


def inverse_root(x: IntArray) -> Integers:
    """``1/sqrt(x / 2**16)`` in steps of 2**-15, within :data:`INVERSE_ROOT_ERROR` relative.

    Args:
        x: from 2**14 to 2**16.

    Returns:
        From 2**15 to 2**16 - 1.

    Raises:
        OverflowError: an argument, or an intermediate, out of range.
    """
    q = np.asarray(x, np.int64)
    within(q, 2**14, 2**16, "the argument of an inverse root")
    slope = _C1 - ((_C2 * q) >> np.int64(16))
    start = _C0 - ((slope * q) >> np.int64(16))
    within(start, 2**14 - 2**10, 2**15 + 2**10, "a first inverse root")
    square = (start * start) >> np.int64(12)
    # 1 - x y^2 in 2**-32: what is left of 2**32 when a 32-bit product wraps
    rest = 2**32 - square * q
    within(rest, -(2**31), 2**31 - 1, "the rest of an inverse root")
    e = rest >> np.int64(13)
    within(e, -(2**15), 2**15 - 1, "the error of an inverse root")
    correction = (e * (_A + ((3 * e) >> np.int64(6)))) >> np.int64(15)
    y: Integers = 2 * start + ((start * correction + 2**18) >> np.int64(19))
    within(y, 2**15, 2**16 - 1, "an inverse root")
    return y
