"""A function of a wide integer: a table of values, and a straight line between two of them.

The C of this is ``firmware/kernels/entrain_interpolation.h``.
"""

from __future__ import annotations

import numpy as np

from entrain.deploy.arithmetic.division import Integers
from entrain.deploy.arithmetic.requantization import IntArray

LARGEST_FRACTION_BITS = 12


def interpolate(position: IntArray, table: IntArray, fraction_bits: int) -> Integers:
    """The value at ``position / 2**fraction_bits``, to nearest, halves upwards.

    Args:
        position: from 0 to ``(len(table) - 2) << fraction_bits``.
        table: int16 values at 0, 1, 2, ...; the last one is there twice, so that every position
            has a next value.
        fraction_bits: from 1 to ``LARGEST_FRACTION_BITS``, so that 32 bits hold every product.

    Raises:
        OverflowError: a position out of range.
    """
    positions, values = np.asarray(position, np.int64), np.asarray(table, np.int64)
    most = (len(values) - 2) << fraction_bits
    if positions.size and not (positions.min() >= 0 and positions.max() <= most):
        raise OverflowError(f"positions from {positions.min()} to {positions.max()} of {most}")
    place = positions >> np.int64(fraction_bits)
    fraction = positions & np.int64(2**fraction_bits - 1)
    rise = (values[place + 1] - values[place]) * fraction
    half = np.int64(1) << np.int64(fraction_bits - 1)
    between: Integers = values[place] + ((rise + half) >> np.int64(fraction_bits))
    return between
