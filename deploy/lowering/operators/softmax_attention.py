"""Softmax attention as one operator: no matrix of scores is stored, and none is quantized."""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log

from entrain.deploy.arithmetic import Exponential, Quotient, Softmax, softmax
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Array, Node, Value
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.heads import (
    AttentionOperator,
    Strides,
    check_heads,
    integers,
    loads,
    reach,
)
from entrain.deploy.lowering.views import View


@dataclass(frozen=True)
class SoftmaxAttention(AttentionOperator):
    """``y_i = sum_j e_ij v_j / sum_j e_ij``, e_ij = base**(score_scale * q_i.k_j).

    Operands: the values that query, key and value show, and the table of exponentials.

    Attributes:
        multiplier: of the scores; see ``arithmetic.exponential``.
        reach: largest magnitude of a score.
        quotient: of the sums of values and of weights.
    """

    multiplier: int
    reach: int
    quotient: Quotient

    def macs(self, *_operands: Node) -> int:
        """Multiply-adds of scores and averages."""
        heads, queries, d_head = self.query.shape
        return heads * queries * self.key.shape[1] * (d_head + self.value.shape[2])

    def reference(self, query: Array, key: Array, value: Array, table: Array) -> Array:
        """Scores, exponentials, averages, each head by itself."""
        q, k, v = integers(self.query, query), integers(self.key, key), integers(self.value, value)
        average = Softmax(Exponential(self.multiplier, self.reach, table), self.quotient).average
        return self.written(average(q @ k.transpose(0, 2, 1), v))


def softmax_attention(
    query: View,
    key: View,
    value: View,
    *,
    score_scale: float,
    output: Value,
    output_strides: Strides,
    base: float = e,
) -> Node:
    """Softmax attention of three views.

    Args:
        query: [heads, queries, d_head].
        key: [heads, keys, d_head].
        value: [heads, keys, d_value].
        score_scale: of the real scores, such as 1 / sqrt(d_head).
        output: the value that the result becomes.
        output_strides: of head, token and channel in it.
        base: of the exponentials.

    Raises:
        UnsupportedOperator: integers may grow too large, or the views are none that a kernel reads.
    """
    check_heads(query, key, value, output, output_strides)
    logit = score_scale * log(base) * query.value.scale * key.value.scale
    farthest = query.shape[2] * reach(query) * reach(key)
    try:
        found = softmax(
            logit, farthest, key.shape[1], reach(value), value.value.scale / output.scale
        )
    except OverflowError as error:
        raise UnsupportedOperator(
            f"softmax attention whose integers may not fit 32 bits: {error}",
            remedy="calibrate again: the step of queries, keys or contexts is out of proportion",
        ) from error
    operator = SoftmaxAttention(
        query,
        key,
        value,
        output.shape,
        output.dtype,
        output_strides,
        output.zero_point,
        found.exponential.multiplier,
        found.exponential.reach,
        found.quotient,
    )
    return apply(operator, *loads(query, key, value), constant(found.exponential.table))
