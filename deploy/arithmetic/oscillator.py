"""The read-out of settled oscillators in integers.

Token i sees token j with the weight ``a_ij ~ (1 + z_i.r_j)**p``. For p = 1 that is affine in z, and
the weighted mean of the values factorises (Pasqualetti and Guo 2026, their read-out; the
factorisation is ours):

    y_i = (V + z_i^T M) / (T + z_i.R),   V = sum_j v_j,   M = sum_j r_j v_j^T,   R = sum_j r_j

V, M and R are made once for a head, so no pair of tokens is looked at. Any other whole p takes the
weights row by row. States z are in steps of 2**-14, anchors r are int8 codes, and R is the sum of
the *rounded* anchors, so that numerator and denominator belong together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrain.deploy.arithmetic.coupling import rounding_shift
from entrain.deploy.arithmetic.division import Integers, Quotient, quotient, reciprocal
from entrain.deploy.arithmetic.ranges import LARGEST_WORD, within, within_word
from entrain.deploy.arithmetic.requantization import IntArray
from entrain.deploy.arithmetic.settling import STATE_ONE, longest_state

HALF_WORD = 2**15 - 1
LARGEST_EXPONENT = 1024  # beyond it the largest weight itself would fade
_SLACK = 2**-13  # by how much the scaled closeness falls short of 1 at most


@dataclass(frozen=True)
class FactorisedReadOut:
    """The read-out for p = 1; made by :func:`factorised_read_out`.

    Attributes:
        moment_shift: M is kept in 16 bits as ``M / 2**moment_shift``.
        value_factor: V is multiplied by this, so that V and z M have one unit.
        sum_shift: R is kept in 16 bits as ``R / 2**sum_shift``.
        tokens: T in the units of z R.
        least: the smallest denominator that is divided by, half a token's weight. A field that is a
            sum of anchors with positive couplings never reads out less than a whole one.
        quotient: the division.
    """

    moment_shift: int
    value_factor: int
    sum_shift: int
    tokens: int
    least: int
    quotient: Quotient

    def moments(self, anchors: IntArray, values: IntArray) -> tuple[Integers, Integers]:
        """M [..., d_osc, d_value] in 16 bits and V [..., 1, d_value] times its factor, in 32.

        Args:
            anchors: codes [..., T, d_osc].
            values: [..., T, d_value], the zero point taken off.

        Raises:
            OverflowError: a sum out of range.
        """
        r, v = np.asarray(anchors, np.int64), np.asarray(values, np.int64)
        sums = np.swapaxes(r, -1, -2) @ v
        within(sums, -LARGEST_WORD // 2, LARGEST_WORD // 2, "a moment")
        moments = np.minimum(rounding_shift(sums, self.moment_shift), HALF_WORD)
        within(moments, -HALF_WORD - 1, HALF_WORD, "a moment")
        total = v.sum(axis=-2, keepdims=True) * self.value_factor
        within_word(total, "a sum of values")
        return moments, total

    def anchor_sum(self, anchors: IntArray) -> Integers:
        """R [..., d_osc] in 16 bits, of codes [..., T, d_osc]."""
        return rounding_shift(np.asarray(anchors, np.int64).sum(axis=-2), self.sum_shift)

    def mean(self, states: IntArray, anchors: IntArray, values: IntArray) -> Integers:
        """The read-outs [..., queries, d_value] in steps of the result, not yet clipped.

        Args:
            states: z [..., queries, d_osc].
            anchors: codes [..., T, d_osc].
            values: [..., T, d_value], the zero point taken off.

        Raises:
            OverflowError: a sum out of range.
        """
        z = np.asarray(states, np.int64)
        moments, total = self.moments(anchors, values)
        numerator = total + z @ moments
        within_word(numerator, "a numerator")
        weight = self.tokens + (z * self.anchor_sum(anchors)[..., None, :]).sum(-1, keepdims=True)
        within_word(weight, "a denominator")
        factor = self.quotient.factor(np.maximum(weight, self.least))
        return self.quotient.divide(numerator, factor)


def factorised_read_out(
    anchors: IntArray, *, anchor_scale: float, value_peak: int, factor: float
) -> FactorisedReadOut:
    """The finest shifts with which no sum leaves its bits, whatever the values.

    Args:
        anchors: codes [heads, T, d_osc].
        anchor_scale: their step.
        value_peak: largest magnitude of a value, its zero point taken off.
        factor: the step of the values over that of the result.

    Raises:
        OverflowError: nothing fits.
    """
    r = np.abs(np.asarray(anchors, np.int64))
    tokens, components = r.shape[-2:]
    longest = longest_state(components)
    largest_sum = int(r.sum(axis=-2).max())
    pull = float(np.linalg.norm(r.astype(np.float64), axis=-1).sum(axis=-1).max()) * longest
    moment_shift = 0
    while not (
        rounding_shift(largest_sum * value_peak, moment_shift) <= HALF_WORD + 1
        and tokens * value_peak * _one(anchor_scale, moment_shift)
        + pull * value_peak / 2**moment_shift
        + components * longest
        <= LARGEST_WORD
    ):
        moment_shift += 1
    sum_shift = 0
    while not (
        rounding_shift(largest_sum, sum_shift) <= HALF_WORD
        and _one(anchor_scale, sum_shift, tokens) + pull / 2**sum_shift + components * longest
        <= LARGEST_WORD
    ):
        sum_shift += 1
    if largest_sum * value_peak > LARGEST_WORD // 2:
        raise OverflowError(f"{largest_sum * value_peak:.3g} of a moment")
    token_weight = _one(anchor_scale, sum_shift, tokens)
    most = int(token_weight + pull / 2**sum_shift + components * longest)
    least = max(1, token_weight // (2 * tokens))
    shifted = factor * 2.0 ** (moment_shift - sum_shift)
    return FactorisedReadOut(
        moment_shift,
        _one(anchor_scale, moment_shift),
        sum_shift,
        token_weight,
        least,
        quotient(shifted, least, most),
    )


def _one(anchor_scale: float, shift: int, times: int = 1) -> int:
    """The number ``times`` in the units of a state times an anchor's code over ``2**shift``."""
    return round(float(times * STATE_ONE) / anchor_scale / 2.0**shift)


@dataclass(frozen=True)
class PlainReadOut:
    """The read-out for any whole p, a row at a time; made by :func:`plain_read_out`.

    Attributes:
        exponent: p.
        one: the number 1 in the units of z.r.
        bits: of a weight.
        quotient: the division.
    """

    exponent: int
    one: int
    bits: int
    quotient: Quotient

    def weights(self, states: IntArray, anchors: IntArray) -> Integers:
        """``(1 + z.r)**p`` over that of the row's largest 1 + z.r, [..., queries, T].

        Negative 1 + z.r, which only rounding makes, count as 0. Powers are taken in 32 bits of
        fraction and cut, weights keep the uppermost ``bits``.

        Args:
            states: z [..., queries, d_osc].
            anchors: codes [..., T, d_osc].

        Raises:
            OverflowError: an intermediate out of range.
        """
        z, r = np.asarray(states, np.int64), np.asarray(anchors, np.int64)
        closeness = np.maximum(self.one + z @ np.swapaxes(r, -1, -2), 0)
        largest = np.maximum(closeness.max(axis=-1, keepdims=True), self.one >> 1)
        # the reciprocal is too large by 2**-15 at most: divide by a little more, and stay below 1
        bound = largest + (largest >> np.int64(14)) + 1
        within(bound, 1, LARGEST_WORD, "a closeness")
        inverse, left = reciprocal(bound)
        scaled = _high((closeness << left).astype(np.uint64), (inverse << 15).astype(np.uint64))
        within(scaled.astype(np.int64), 0, LARGEST_WORD, "a scaled closeness")
        power = _power(scaled << np.uint64(1), self.exponent)
        weights: Integers = (power >> np.uint64(32 - self.bits)).astype(np.int64)
        return weights

    def mean(self, states: IntArray, anchors: IntArray, values: IntArray) -> Integers:
        """As :meth:`FactorisedReadOut.mean`."""
        weights = self.weights(states, anchors)
        numerator = weights @ np.asarray(values, np.int64)
        within_word(numerator, "a numerator")
        total = weights.sum(axis=-1, keepdims=True)
        factor = self.quotient.factor(np.maximum(total, self.quotient.least))
        return self.quotient.divide(numerator, factor)


def plain_read_out(
    anchors: IntArray, *, exponent: int, anchor_scale: float, value_peak: int, factor: float
) -> PlainReadOut:
    """As many bits a weight as 32-bit sums allow.

    Args:
        anchors: codes [heads, T, d_osc].
        exponent: p, from 1 to 1024.
        anchor_scale: their step.
        value_peak: largest magnitude of a value, its zero point taken off.
        factor: the step of the values over that of the result.

    Raises:
        OverflowError: nothing fits, or p is out of range.
    """
    if not 1 <= exponent <= LARGEST_EXPONENT:
        raise OverflowError(f"an exponent of {exponent}")
    r = np.asarray(anchors, np.float64)
    tokens, components = r.shape[-2:]
    one = _one(anchor_scale, 0)
    reach = one + longest_state(components) * float(np.linalg.norm(r, axis=-1).max())
    if one < 2 or reach * (1 + 2.0**-14) + 1 > LARGEST_WORD:
        raise OverflowError(f"{reach:.3g} of a closeness")
    bits = 15
    while bits > 1 and tokens * value_peak << bits > LARGEST_WORD:
        bits -= 1
    if tokens * max(value_peak, 1) << bits > LARGEST_WORD:
        raise OverflowError(f"{tokens} tokens of values up to {value_peak}")
    # half of what the row's largest weight always has: a row of nothing reads out as nothing
    least = max(1, int(2**bits * (1 - _SLACK) ** exponent) // 2)
    return PlainReadOut(exponent, one, bits, quotient(factor, least, tokens << bits))


def _high(a: IntArray, b: IntArray) -> IntArray:
    """The high word of a product of two 32-bit words."""
    product: IntArray = (a * b) >> np.uint64(32)
    return product


def _power(base: IntArray, exponent: int) -> IntArray:
    """``base**exponent`` of fractions of 32 bits, by squaring from the exponent's highest bit."""
    power = base
    for bit in format(exponent, "b")[1:]:
        power = _high(power, power)
        if bit == "1":
            power = _high(power, base)
    return power
