"""Exponentials of scores, against the largest score of their row, by one table.

A row's weights ``exp(logit * s_j)`` matter only up to a common factor, so each is taken against the
largest. ``t_j = (s_j * multiplier) >> 16`` counts the table's steps, and

    e_j = table[max(t_j - max_l t_l + entries - 1, 0)]

whose last entry is the largest score's own, and whose first is 0 and stands for all that is farther
below than the table reaches. The multiplier is an integer because the width of the table's step
follows from it, not the other way round: it costs no precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic.requantization import IntArray

ENTRIES = 2048
LARGEST_WEIGHT = 2**15 - 1
WIDEST_STEP = 1 / 8
SCORE_SHIFT = 16
HIGHEST_STEP = 2**15 - 1


@dataclass(frozen=True, eq=False)
class Exponential:
    """A table of exponentials and how a score finds its entry; made by :func:`exponential`.

    Attributes:
        multiplier: of the scores; positive.
        reach: largest magnitude of a score. ``reach * multiplier < 2**31``, and every t lies from
            ``entries - 1 - 2**15`` to ``2**15 - 1``: it fits 16 bits, also without a sign when
            2**15 is added, and then no difference falls below 0.
        table: int16 [ENTRIES], ascending from 0 to the largest weight.
    """

    multiplier: int
    reach: int
    table: NDArray[np.int16]

    @property
    def largest(self) -> int:
        """The weight of a row's largest score."""
        return int(self.table[-1])

    def weights(self, scores: IntArray) -> NDArray[np.int64]:
        """The weight of each score, from 0 to ``largest``, which each row has at least once.

        Args:
            scores: integers, a row along the last axis.

        Raises:
            OverflowError: a score beyond ``reach``.
        """
        s = np.asarray(scores, np.int64)
        if s.size and np.abs(s).max() > self.reach:
            raise OverflowError(f"a score of magnitude {np.abs(s).max()}")
        t = (s * np.int64(self.multiplier)) >> np.int64(SCORE_SHIFT)
        places = t - t.max(axis=-1, keepdims=True) + np.int64(self.table.size - 1)
        found: NDArray[np.int64] = self.table[np.maximum(places, 0)].astype(np.int64)
        return found


def exponential(logit: float, reach: int, largest: int) -> Exponential:
    """A table for ``exp(logit * s)``.

    Its step is as fine as the entries allow: they span what the scores do, or, if that is less,
    all weights that do not round to 0; about 0.0054 then. Where scores can reach logits beyond
    160, it widens in proportion, so that all steps fit 16 bits.

    Args:
        logit: natural logarithm that one step of a score stands for, > 0.
        reach: largest magnitude of a score, > 0.
        largest: weight of a row's largest score, up to 2**15 - 1.

    Raises:
        OverflowError: the scores spread so far that the table would be coarse.
    """
    span = min(log(2.0 * largest), 2.0 * reach * logit)
    finest = span / (ENTRIES - 2)  # the first entry is not on the curve
    highest = ((HIGHEST_STEP - ENTRIES) << SCORE_SHIFT) // reach
    multiplier = max(1, min(int(2**SCORE_SHIFT * logit / finest), highest))
    step = 2**SCORE_SHIFT * logit / multiplier
    if highest < 1 or not 0.0 < step <= WIDEST_STEP:
        raise OverflowError(f"logits up to {logit * reach:.3g} from sums up to {reach}")
    curve = [round(largest * exp(-step * below)) for below in range(ENTRIES - 1)]
    return Exponential(multiplier, reach, np.array([0, *reversed(curve)], np.int16))
