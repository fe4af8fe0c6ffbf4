"""The specification of the blocks: what each computes, in numpy integers, to the last bit.

The attention blocks are the lowered network's own operators for one head: the same requantization,
couplings, settling and division as on the microcontroller (``entrain.deploy.arithmetic``), so that
a network's attention may run in either place and nothing changes. The settling core is the middle
of them by itself: couplings in, settled state and weights out.

Queries q [queries, d_head], keys k [T, d_head], values v [T, d_value], all int8 or uint8 with their
zero point 0; contexts [queries, d_value] int8. Anchors r are int8 codes [T, d_osc] in steps of
1/127, states z in steps of 2**-14.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic import (
    FactorisedReadOut,
    FieldStrength,
    FieldSum,
    IntArray,
    Quotient,
    RectifiedCoupling,
    SeparableCoupling,
    Softmax,
    field_strength,
    quotient,
    rounding_shift,
    settle,
)
from entrain.deploy.arithmetic.settling import LARGEST_COMPONENTS, STATE_ONE
from entrain.fpga.dynamics import Dynamics

Integers = NDArray[np.int64]

UNIT_STEPS = 127  # a component of an anchor is a multiple of 1/127
LONGEST = 128  # tokens
COUPLING_BITS = 15
LARGEST_COUPLING = 2**COUPLING_BITS - 1
WEIGHT_BITS = 16
LARGEST_WEIGHT = 2**WEIGHT_BITS - 1


class Flags(IntFlag):
    """What a block says of a query beside its result.

    ``ZERO``: no field; z = 0 and the read-out is uniform. ``WEAK``: no component of the field is
    larger than what rounding may have made, so its direction is uncertain. ``NOT_CONVERGED``: the
    dynamics still moved at their last step. ``SATURATED``: a result was cut to its format.
    """

    ZERO = 1
    WEAK = 2
    NOT_CONVERGED = 4
    SATURATED = 8


@dataclass(frozen=True, eq=False)
class OscillatorBlock:
    """Oscillator attention with the factorised read-out (p = 1).

    ``y_i = (V + z_i^T M) / (T + z_i.R)``, ``z_i = h_i / |h_i|``, ``h_i = sum_j (w_ij + eps) r_j``.

    Attributes:
        anchors: codes [T, d_osc].
        bias: what epsilon adds to every field, [d_osc].
        coupling: of pairs by relu, or separable and linear in T.
        total: how fields come from sums of w r.
        read_out: M, V and R, and the division.
        zero_point: of the contexts.
    """

    anchors: IntArray
    bias: IntArray
    coupling: RectifiedCoupling | SeparableCoupling
    total: FieldSum
    read_out: FactorisedReadOut
    zero_point: int

    def fields(self, queries: IntArray, keys: IntArray) -> Integers:
        """The fields h [queries, d_osc], int32."""
        q, k = queries.astype(np.int64), keys.astype(np.int64)
        r, bias = self.anchors.astype(np.int64), self.bias.astype(np.int64)
        if isinstance(self.coupling, SeparableCoupling):
            drive, shift = self.coupling.drive(np.maximum(k, 0).T @ r)
            constant = rounding_shift(bias, shift.reshape(()))
            return self.total.field(np.maximum(q, 0) @ drive, constant)
        return self.total.field(self.coupling.weights(q @ k.T) @ r, bias)

    def contexts(self, queries: IntArray, keys: IntArray, values: IntArray) -> Integers:
        """Contexts [queries, d_value], from -128 to 127.

        Raises:
            OverflowError: an intermediate leaves the range that was proved for it.
        """
        states = settle(self.fields(queries, keys))
        context = self.read_out.mean(states, self.anchors, values)
        return np.clip(context + self.zero_point, -128, 127)


@dataclass(frozen=True, eq=False)
class SoftmaxBlock:
    """Softmax attention with an exponent table and one reciprocal a query.

    ``y_i = sum_j e_ij v_j / sum_j e_ij``.

    Attributes:
        softmax: table, multiplier and division.
        zero_point: of the contexts.
    """

    softmax: Softmax
    zero_point: int

    @property
    def narrow(self) -> bool:
        """Whether its weights have 8 bits, so that a DSP block takes two products of them."""
        return self.softmax.exponential.largest < 2**8

    def contexts(self, queries: IntArray, keys: IntArray, values: IntArray) -> Integers:
        """Contexts [queries, d_value], from -128 to 127.

        Raises:
            OverflowError: an intermediate leaves the range that was proved for it.
        """
        scores = queries.astype(np.int64) @ keys.astype(np.int64).T
        context = self.softmax.average(scores, values)
        return np.clip(context + self.zero_point, -128, 127)


@dataclass(frozen=True, eq=False)
class Settled:
    """What the settling core answers, for any number of queries.

    Attributes:
        states: z [..., d_osc], steps of 2**-14.
        weights: a_ij [..., T], steps of 2**-16; they sum to 1 but for rounding.
        flags: :class:`Flags` [...].
        steps: taken by the dynamics, [...]; 0 for the closed form.
    """

    states: Integers
    weights: Integers
    flags: Integers
    steps: Integers


@dataclass(frozen=True, eq=False)
class SettlingCore:
    """Couplings in, settled state and weights ``a_ij = (1 + z_i.r_j) / (T + z_i.R)`` out.

    Attributes:
        anchors: codes [T, d_osc].
        rounding: how far the couplings' own rounding may have moved a component of the field; not
            more than that is WEAK.
        dynamics: the oscillators' own way there; None: the closed form z = h / |h|.
    """

    anchors: IntArray
    rounding: int
    dynamics: Dynamics | None = None

    def __post_init__(self) -> None:
        tokens, components = self.anchors.shape
        if not (1 <= tokens <= LONGEST and 1 <= components <= LARGEST_COMPONENTS):
            raise OverflowError(f"{tokens} anchors of {components} components")

    @property
    def one(self) -> int:
        """The number 1 in the units of z.r."""
        return STATE_ONE * UNIT_STEPS

    @property
    def quotient(self) -> Quotient:
        """Weights from closeness, whatever its sum.

        One anchor at least lies on the field's side, and none is more than 5 % too long.
        """
        most = self.anchors.shape[0] * (2 * self.one + self.one // 8)
        return quotient(float(2**WEIGHT_BITS), self.one // 2, most)

    def settled(self, couplings: IntArray) -> Settled:
        """The settled states of couplings [..., T], each from 0 to 2**15 - 1.

        Raises:
            OverflowError: a coupling out of range.
        """
        w = np.asarray(couplings, np.int64)
        if w.size and (w.min() < 0 or w.max() > LARGEST_COUPLING):
            raise OverflowError(f"couplings from {w.min()} to {w.max()}")
        fields = w @ self.anchors.astype(np.int64)
        flags = _strength_flags(fields, self.rounding)
        steps = np.zeros(flags.shape, np.int64)
        if self.dynamics is None:
            states = settle(fields)
        else:
            path = self.dynamics.settle(fields)
            states, steps = path.states, path.steps
            flags |= np.where(path.converged, 0, int(Flags.NOT_CONVERGED))
        weights, cut = self._weights(states)
        return Settled(states, weights, flags | np.where(cut, int(Flags.SATURATED), 0), steps)

    def _weights(self, states: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """The weights, and for which queries one had to be cut."""
        closeness = np.maximum(self.one + states @ self.anchors.astype(np.int64).T, 0)
        total = closeness.sum(axis=-1, keepdims=True)
        factor = self.quotient.factor(np.maximum(total, self.quotient.least))
        weights = self.quotient.divide(closeness, factor)
        return np.minimum(weights, LARGEST_WEIGHT), (weights > LARGEST_WEIGHT).any(axis=-1)


def _strength_flags(fields: Integers, rounding: int) -> Integers:
    strengths = field_strength(fields, rounding)
    zero = np.where(strengths == FieldStrength.ZERO, int(Flags.ZERO), 0)
    return zero + np.where(strengths == FieldStrength.WEAK, int(Flags.WEAK), 0)
