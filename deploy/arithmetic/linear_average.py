"""The average of values weighted by products of features, in integers, linear in their number.

    y_i = sum_j (a_i.b_j) v_j / sum_j a_i.b_j = a_i.M / a_i.R,  M = sum_j b_j v_j^T,  R = sum_j b_j

Features a of queries and b of keys are 0 or more, and come from tables of 256 entries. M and R are
summed in 32 bits and then shifted alike to 16, as far as the largest of R asks. So they keep 15
bits where R is large; what a query alone sees through features of which R has a thousandth of
that, is known as much less exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic.division import Quotient, leading_zeros, quotient
from entrain.deploy.arithmetic.requantization import IntArray, RealArray

FEATURE_BITS = 15
LARGEST_FEATURE = 2**FEATURE_BITS - 1
LARGEST_SUM = 2**31 - 1
NO_WEIGHT = 2**14

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class LinearAverage:
    """The integers of a linear average; made by :func:`linear_average`.

    Attributes:
        value_bits: values lie from ``-2**value_bits`` to ``2**value_bits - 1``.
        quotient: step of the values over that of the result, divided by a row's sum of weights.
    """

    value_bits: int
    quotient: Quotient

    def average(self, queries: IntArray, keys: IntArray, values: IntArray) -> Integers:
        """The averages, in steps of the result, its zero point not yet added.

        A sum of weights below ``NO_WEIGHT`` counts as that much, as one below epsilon does in
        reals: what sees next to nothing reads next to zero. With features that are never 0, no sum
        of weights is as small.

        Args:
            queries: features [..., queries, features].
            keys: features [..., keys, features].
            values: [..., keys, channels], zero point taken off.

        Raises:
            OverflowError: features or values beyond what they were promised to be.
        """
        one = np.int64(1 << self.value_bits)
        totals = keys.sum(axis=-2, dtype=np.int64)[..., np.newaxis]
        sums = np.swapaxes(keys, -1, -2).astype(np.int64) @ values
        moments = np.concatenate([sums, totals * one], axis=-1)
        _within(moments, 32)
        largest = np.maximum(totals.max(axis=-2, keepdims=True), 1) * one
        down = 32 - leading_zeros(largest) - np.int64(FEATURE_BITS)
        shifted = (moments << np.maximum(-down, 0)) >> np.maximum(down, 0)
        _within(shifted, 16)
        products = queries.astype(np.int64) @ shifted
        _within(products, 32)
        weights = np.maximum(products[..., -1:], NO_WEIGHT)
        return self.quotient.divide(products[..., :-1], self.quotient.factor(weights))


def linear_average(
    features: int, keys: int, values: tuple[int, int], factor: float
) -> tuple[LinearAverage, int, int]:
    """Integers for averages over ``keys`` values, and how large the features may be.

    Args:
        features: their number.
        keys: summands.
        values: least and greatest value.
        factor: step of a value over step of the result.

    Returns:
        The average; the largest feature of a query; that of a key.

    Raises:
        OverflowError: no such integers; the message says what is too large.
    """
    low, high = values
    bits = max(1, (max(-low - 1, high)).bit_length())
    largest_query = min(LARGEST_FEATURE, LARGEST_SUM // (features << FEATURE_BITS))
    largest_key = min(LARGEST_FEATURE, LARGEST_SUM // (keys << bits))
    if largest_query < 2**6 or largest_key < 2**6:
        raise OverflowError(f"{features} features of {keys} keys")
    most = features * largest_query << FEATURE_BITS
    average = LinearAverage(bits, quotient(factor * 2.0**bits, NO_WEIGHT, most))
    return average, largest_query, largest_key


def feature_table(curve: RealArray, largest: int) -> NDArray[np.int16]:
    """Features as integers: the largest becomes ``largest``, and only 0 becomes 0.

    The unit does not matter, since an average divides it out again.

    Args:
        curve: the feature of each byte, without its sign: [256], 0 or more.
        largest: the largest integer.
    """
    peak = float(curve.max()) or 1.0
    rounded = np.rint(curve / peak * largest)
    return np.maximum(rounded, curve > 0.0).astype(np.int16)


def _within(numbers: Integers, bits: int) -> None:
    """Raise OverflowError unless all fit a type that was proved to hold them."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    if numbers.size and (numbers.min() < low or numbers.max() > high):
        raise OverflowError(f"sums of features from {numbers.min()} to {numbers.max()}")
