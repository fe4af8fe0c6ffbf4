"""Oscillator attention as one operator: couplings are neither stored nor quantized to 8 bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrain.deploy.arithmetic import (
    FactorisedReadOut,
    FieldSum,
    PlainReadOut,
    RectifiedCoupling,
    SeparableCoupling,
    TabulatedCoupling,
    factorised_read_out,
    field_strength,
    field_sum,
    plain_read_out,
    rounding_shift,
    settle,
)
from entrain.deploy.arithmetic.settling import LARGEST_COMPONENTS
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Array, Node, Value
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.coupling import Function, integer_coupling
from entrain.deploy.lowering.operators.heads import (
    AttentionOperator,
    Strides,
    check_heads,
    integers,
    loads,
    reach,
)
from entrain.deploy.lowering.views import View

LONGEST_ANCHOR = 1.05  # rounding to 8 bits lengthens a unit vector by 3 % at most, d_osc = 64


@dataclass(frozen=True)
class OscillatorAttention(AttentionOperator):
    """``y_i = sum_j a_ij v_j``, a_ij ~ (1 + z_i.r_j)^p, z_i = h_i / |h_i|, h_i = sum_j w_ij r_j.

    Operands: the values that query, key and value show; the anchors, int8 codes
    [heads or 1, keys, d_osc]; the constant part of the fields, int32 [heads or 1, d_osc]; and,
    with a tabulated coupling, its table, int16.

    Attributes:
        coupling: how w comes from queries and keys.
        total: how fields come from sums of w r.
        read_out: factorised for p = 1, plain for any other p.
    """

    coupling: RectifiedCoupling | TabulatedCoupling | SeparableCoupling
    total: FieldSum
    read_out: FactorisedReadOut | PlainReadOut

    def macs(self, *operands: Node) -> int:
        """Multiply-adds of fields and read-outs, as they are computed."""
        heads, queries, d_head = self.query.shape
        keys, d_value = self.value.shape[1:]
        d_osc = operands[3].shape[2]
        if isinstance(self.coupling, SeparableCoupling):
            field = (queries + keys) * d_head * d_osc
        else:
            field = queries * keys * (d_head + d_osc)
        if isinstance(self.read_out, FactorisedReadOut):
            read_out = (queries + keys) * d_osc * d_value + queries * d_osc
        else:
            read_out = queries * keys * (d_osc + self.read_out.exponent - 1 + d_value)
        return heads * (field + read_out)

    def reference(
        self, query: Array, key: Array, value: Array, anchors: Array, bias: Array, *table: Array
    ) -> Array:
        """Fields, settled states, read-outs, each head by itself."""
        states = settle(self.fields(query, key, anchors, bias, *table))
        v = integers(self.value, value)
        return self.written(self.read_out.mean(states, anchors, v))

    def fields(self, query: Array, key: Array, anchors: Array, bias: Array, *table: Array) -> Array:
        """The fields h [heads, queries, d_osc], int32."""
        q, k = integers(self.query, query), integers(self.key, key)
        r, constants = anchors.astype(np.int64), bias.astype(np.int64)[:, None]
        if isinstance(self.coupling, SeparableCoupling):
            sums = np.swapaxes(np.maximum(k, 0), -1, -2) @ r
            drive, shift = self.coupling.drive(sums)
            return self.total.field(np.maximum(q, 0) @ drive, rounding_shift(constants, shift))
        weights = self.coupling.weights(q @ np.swapaxes(k, -1, -2), *table)
        return self.total.field(weights @ r, constants)

    def strengths(
        self, query: Array, key: Array, anchors: Array, bias: Array, *table: Array
    ) -> Array:
        """The :class:`~entrain.deploy.arithmetic.FieldStrength` of each token [heads, queries].

        Takes the operands of :meth:`reference` without the values.
        """
        fields = self.fields(query, key, anchors, bias, *table)
        return field_strength(fields, self._rounding(anchors))

    def _rounding(self, anchors: Array) -> int:
        """How far roundings may have moved a component of a field: half a step each."""
        if isinstance(self.coupling, SeparableCoupling):
            steps = self.query.shape[2] * reach(self.query)
        elif isinstance(self.coupling, RectifiedCoupling) and self.coupling.shift == 0:
            steps = 0
        else:
            steps = int(np.abs(anchors.astype(np.int64)).sum(axis=1).max())
        return (steps << self.total.lift) // 2 + 1 if steps else 0


def oscillator_attention(
    query: View,
    key: View,
    value: View,
    *,
    anchors: Array,
    anchor_scale: float,
    score_scale: float,
    coupling: str,
    epsilon: float,
    exponent: int,
    output: Value,
    output_strides: Strides,
    function: Function | None = None,
    span: float | None = None,
) -> Node:
    """Oscillator attention of three views.

    Args:
        query: [heads, queries, d_head].
        key: [heads, keys, d_head].
        value: [heads, keys, d_value].
        anchors: int8 codes [heads or 1, keys, d_osc]; no anchor is longer than rounding makes it.
        anchor_scale: their step, such as 1/127.
        score_scale: of the real scores, such as 1 / sqrt(d_head).
        coupling: a name of ``COUPLINGS``, ``separable``, or a name for ``function``.
        epsilon: what is added to every coupling, 0 or more.
        exponent: p, a whole number.
        output: the value that the result becomes.
        output_strides: of head, token and channel in it.
        function: the coupling as a function of real scores, never negative, if its name is none
            of the above, kept in a table.
        span: the score beyond which, to either side, the function no longer changes, so that its
            table can be fine; without it the table spans all scores that can occur.

    Raises:
        UnsupportedOperator: integers may grow too large, or anchors or views are not usable.
    """
    check_heads(query, key, value, output, output_strides)
    _check_anchors(anchors, anchor_scale, key)
    codes = anchors.astype(np.int64)
    sums = codes.sum(axis=1)
    factor = value.value.scale / output.scale
    scale = score_scale * query.value.scale * key.value.scale
    try:
        found = integer_coupling(coupling, query, key, codes, scale, function, span)
        total = field_sum(found.peak, epsilon / found.unit, int(np.abs(sums).max()))
        read_out: FactorisedReadOut | PlainReadOut
        if exponent == 1:
            read_out = factorised_read_out(
                codes, anchor_scale=anchor_scale, value_peak=reach(value), factor=factor
            )
        else:
            read_out = plain_read_out(
                codes,
                exponent=exponent,
                anchor_scale=anchor_scale,
                value_peak=reach(value),
                factor=factor,
            )
    except OverflowError as error:
        raise UnsupportedOperator(
            f"oscillator attention whose integers may not fit 32 bits: {error}",
            remedy="calibrate again: the step of queries, keys or contexts is out of proportion",
        ) from error
    operator = OscillatorAttention(
        query,
        key,
        value,
        output.shape,
        output.dtype,
        output_strides,
        output.zero_point,
        found.coupling,
        total,
        read_out,
    )
    constants = [anchors.astype(np.int8), (total.epsilon * sums).astype(np.int32), *found.table]
    return apply(operator, *loads(query, key, value), *map(constant, constants))


def _check_anchors(anchors: Array, anchor_scale: float, key: View) -> None:
    heads, keys, _ = key.shape
    if (
        anchors.dtype != np.int8
        or anchors.ndim != 3
        or anchors.shape[0] not in (1, heads)
        or anchors.shape[1] != keys
        or not 1 <= anchors.shape[2] <= LARGEST_COMPONENTS
    ):
        raise UnsupportedOperator(
            f"anchors {anchors.dtype} {anchors.shape} for {heads} heads of {keys} keys",
            remedy=f"one anchor a key, int8, of up to {LARGEST_COMPONENTS} components",
        )
    longest = float(np.linalg.norm(anchors.astype(np.float64), axis=-1).max()) * anchor_scale
    if not 0 < longest <= LONGEST_ANCHOR:
        raise UnsupportedOperator(
            f"an anchor of length {longest:.3g}, where weights 1 + z.r may be negative",
            remedy="normalise the anchors to unit length before they are rounded",
        )
