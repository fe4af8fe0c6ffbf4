"""Couplings and fields of oscillators in integers: ``h_i = sum_j w_ij r_j + epsilon sum_j r_j``.

Anchors r are int8 codes. The direction of h is all that matters, so each coupling has a unit of its
own; the lowering proves for any input that no sum leaves 32 bits. The term of epsilon, the same
for all tokens, is a constant ("bias") that is added to each field.

A negative score counts as none (relu), or a table says what it counts (softplus, or whatever is
positive), or the coupling is separable, ``relu(q_i).relu(k_j)``, and no pair is ever looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrain.deploy.arithmetic.division import Integers
from entrain.deploy.arithmetic.ranges import LARGEST_WORD, within, within_word
from entrain.deploy.arithmetic.requantization import IntArray

WEIGHT_BITS = 15  # a weight, or a component of a drive, is one half of a 32-bit register
TABLE_SIZE = 512
_FINE = 2**8  # epsilon gets so many steps where there is room


@dataclass(frozen=True)
class FieldSum:
    """``h = (sum << lift) + bias``, of a sum of weights times anchor codes.

    ``epsilon`` is the coupling's constant part in steps of ``2**-lift`` of a weight's unit.
    """

    lift: int
    epsilon: int

    def field(self, total: IntArray, bias: IntArray) -> Integers:
        """The fields h, int32.

        Raises:
            OverflowError: a sum out of range.
        """
        sums = np.asarray(total, np.int64)
        within_word(sums, "a sum of couplings")
        fields: Integers = (sums << np.int64(self.lift)) + np.asarray(bias, np.int64)
        within_word(fields, "a field")
        return fields


def weight_bits(peak_of_one: int) -> int:
    """Bits of a weight, so that half a 32-bit word is left for epsilon.

    Args:
        peak_of_one: largest magnitude of the sum if every weight were 1.

    Raises:
        OverflowError: not even one bit fits.
    """
    bits = min(WEIGHT_BITS, 30 - peak_of_one.bit_length())
    if bits < 1:
        raise OverflowError(f"{peak_of_one:.3g} of a sum of couplings")
    return bits


def field_sum(peak: int, epsilon: float, anchor_sum: int) -> FieldSum:
    """As fine an epsilon as there is room for.

    Args:
        peak: largest magnitude of the sum.
        epsilon: the constant part in units of a weight; at least one step, if it is not 0.
        anchor_sum: largest magnitude of a component of ``sum_j r_j``.

    Raises:
        OverflowError: epsilon is too large against the weights.
    """

    def steps(lift: int) -> int:
        return max(1, round(epsilon * 2**lift)) if epsilon > 0 else 0

    def reach(lift: int) -> int:
        return (peak << lift) + steps(lift) * anchor_sum

    lift = 0
    while 0 < steps(lift) < _FINE and reach(lift + 1) <= LARGEST_WORD:
        lift += 1
    if reach(lift) > LARGEST_WORD:
        raise OverflowError(f"{reach(lift):.3g} of a field")
    return FieldSum(lift, steps(lift))


@dataclass(frozen=True)
class RectifiedCoupling:
    """``w = min(max(s, 0) / 2**shift, 2**bits - 1)``, to nearest, halves upwards.

    The lowering chooses the shift so that a weight is cut by one step at most.
    """

    shift: int
    bits: int

    def weights(self, scores: IntArray) -> Integers:
        """The weights of int32 scores, of the same shape."""
        s = np.asarray(scores, np.int64)
        within_word(s + (np.int64(1) << self.shift), "a score")
        weights: Integers = np.clip(rounding_shift(s, self.shift), 0, 2**self.bits - 1)
        return weights


def rectified_coupling(peak: int, bits: int, *, above: float = 0.0) -> RectifiedCoupling:
    """The finest coupling for scores up to ``peak``.

    Args:
        peak: largest magnitude of a score.
        bits: of a weight.
        above: what is added to a weight later, in units of a score.

    Raises:
        OverflowError: scores do not fit 32 bits.
    """
    shift = 0
    while int(rounding_shift(peak, shift)) + round(above / 2**shift) > 2**bits:
        shift += 1
    if peak + (1 << shift) > LARGEST_WORD:
        raise OverflowError(f"{peak:.3g} of a score")
    return RectifiedCoupling(shift, bits)


@dataclass(frozen=True)
class TabulatedCoupling:
    """``w = table[place] + rectified(s)``, cut to ``bits``, of any function of the score.

    The place is the nearest to ``s * ratio``, halves upwards, kept within the table, whose middle
    is the score 0. A function that grows as the score itself has that part beside the table, and
    needs no table of it.

    Attributes:
        multiplier: the ratio is ``multiplier / 2**(32 - lift)``.
        lift: see there.
        bits: of a weight.
        rectified: what the table is added to, if anything.
    """

    multiplier: int
    lift: int
    bits: int
    rectified: RectifiedCoupling | None

    def weights(self, scores: IntArray, table: IntArray) -> Integers:
        """The weights of int32 scores, of the same shape.

        Args:
            scores: of any shape.
            table: ``TABLE_SIZE`` weights.

        Raises:
            OverflowError: a score out of range.
        """
        lifted = np.asarray(scores, np.int64) << np.int64(self.lift)
        within_word(lifted, "a score")
        rounded = (lifted * np.int64(self.multiplier) + 2**31) >> np.int64(32)
        middle = TABLE_SIZE // 2
        weights: Integers = np.asarray(table, np.int64)[
            np.clip(rounded, -middle, middle - 1) + middle
        ]
        if self.rectified is not None:
            weights = weights + self.rectified.weights(scores)
        kept: Integers = np.minimum(weights, 2**self.bits - 1)
        return kept


def table_scale(ratio: float, peak: int) -> tuple[int, int]:
    """Multiplier and lift of a :class:`TabulatedCoupling`.

    Args:
        ratio: the score's step over the table's, > 0.
        peak: largest magnitude of a score.

    Raises:
        OverflowError: the scores do not fit, or the ratio is out of range.
    """
    lift = 0
    while ratio / 2**lift >= 0.499:
        lift += 1
    multiplier = round(ratio * 2.0 ** (32 - lift))
    if peak << lift > LARGEST_WORD or multiplier < 1:
        raise OverflowError(f"{peak:.3g} of a score, {ratio:.3g} of it a place in the table")
    return multiplier, lift


@dataclass(frozen=True)
class SeparableCoupling:
    """``h_i = q_i . A + bias`` with ``A = sum_j k_j r_j^T`` in ``bits`` bits and a sign.

    A is shifted right by n, as few bits as its largest element needs, and the bias with it: the
    unit of h is each head's own.
    """

    bits: int

    def drive(self, total: IntArray) -> tuple[Integers, Integers]:
        """A and n [..., 1, 1] of the exact sums [..., d_head, d_osc], int32."""
        sums = np.asarray(total, np.int64)
        within(sums, -(2**30), 2**30, "a drive")
        largest = np.abs(sums).max(axis=(-2, -1), keepdims=True)
        shift = np.maximum(np.frexp(largest.astype(np.float64))[1].astype(np.int64) - self.bits, 0)
        rounded = rounding_shift(sums, shift)
        return np.minimum(rounded, 2**self.bits - 1), shift


def rounding_shift(x: IntArray | int, shift: IntArray | int) -> Integers:
    """``x / 2**shift`` to nearest, halves upwards; a shift of 0 leaves x as it is."""
    by = np.asarray(shift, np.int64)
    half = (np.int64(1) << by) >> np.int64(1)
    shifted: Integers = (np.asarray(x, np.int64) + half) >> by
    return shifted
