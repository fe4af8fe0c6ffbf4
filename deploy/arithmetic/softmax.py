"""The average of values weighted by the softmax of scores, in integers.

    y_i = sum_j e_ij v_j / sum_j e_ij

with the exponentials of ``exponential.py`` and the quotient of ``division.py``; the weights are
never divided, only their sums with the values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic.division import Quotient, quotient
from entrain.deploy.arithmetic.exponential import LARGEST_WEIGHT, Exponential, exponential
from entrain.deploy.arithmetic.requantization import IntArray

LARGEST_SUM = 2**31 - 1
LARGEST_RESULT = 2**15
SMALLEST_WEIGHT = 2**8  # of a row's largest score; with less the others would be too coarse


@dataclass(frozen=True, eq=False)
class Softmax:
    """The integers of a softmax average; made by :func:`softmax`.

    Attributes:
        exponential: weights of the scores.
        quotient: value's step over result's step, divided by a row's sum of weights.
    """

    exponential: Exponential
    quotient: Quotient

    def average(self, scores: IntArray, values: IntArray) -> NDArray[np.int64]:
        """The averages, in steps of the result, its zero point not yet added.

        Args:
            scores: [..., queries, keys].
            values: [..., keys, channels], zero point taken off.

        Raises:
            OverflowError: scores or values beyond what they were promised to be.
        """
        weights = self.exponential.weights(scores)
        factor = self.quotient.factor(weights.sum(axis=-1, keepdims=True))
        return self.quotient.divide(weights @ np.asarray(values, np.int64), factor)


def softmax(logit: float, reach: int, keys: int, value_reach: int, factor: float) -> Softmax:
    """Integers for averages over ``keys`` values.

    The largest weight is such that ``keys * weight * value`` fits 32 bits.

    Args:
        logit: natural logarithm that one step of a score stands for, > 0.
        reach: largest magnitude of a score, > 0.
        keys: summands of a row.
        value_reach: largest magnitude of a value.
        factor: step of a value over step of the result.

    Raises:
        OverflowError: no such integers; the message says what is too large.
    """
    largest = min(LARGEST_WEIGHT, LARGEST_SUM // (keys * value_reach))
    if largest < SMALLEST_WEIGHT or value_reach * factor > LARGEST_RESULT:
        raise OverflowError(f"{keys} values up to {value_reach}, times {factor:.3g}")
    weights = exponential(logit, reach, largest)
    return Softmax(weights, quotient(factor, largest, keys * largest))
