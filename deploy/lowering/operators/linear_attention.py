"""Linear attention as one operator: no pair of tokens is ever looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic import (
    LinearAverage,
    Quotient,
    feature_table,
    integer_range,
    linear_average,
)
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Array, Node, Value
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.heads import (
    AttentionOperator,
    Strides,
    check_heads,
    elements,
    integers,
    loads,
)
from entrain.deploy.lowering.views import View

Reals = NDArray[np.float64]

FEATURES: dict[str, Callable[[Reals, float], Reals]] = {
    "relu": lambda x, epsilon: np.maximum(x, 0.0) + epsilon,
    "elu": lambda x, _: np.where(x > 0.0, x + 1.0, np.exp(np.minimum(x, 0.0))),
}


@dataclass(frozen=True)
class LinearAttention(AttentionOperator):
    """``y_i = sum_j (f(q_i).f(k_j)) v_j / sum_j f(q_i).f(k_j)``.

    Operands: the values that query, key and value show, and the tables of the features of queries
    and of keys, by byte without its sign.

    Attributes:
        value_bits: see ``arithmetic.linear_average``.
        quotient: of the sums of values and of weights.
    """

    value_bits: int
    quotient: Quotient

    def macs(self, *_operands: Node) -> int:
        """Multiply-adds of the sums over keys, and of what queries read of them."""
        heads, queries, d_head = self.query.shape
        _, keys, d_value = self.value.shape
        return heads * d_head * (keys * d_value + queries * (d_value + 1))

    def reference(
        self, query: Array, key: Array, value: Array, query_table: Array, key_table: Array
    ) -> Array:
        """Features by table, then the averages, each head by itself."""
        queries = query_table[elements(self.query, query).view(np.uint8)]
        keys = key_table[elements(self.key, key).view(np.uint8)]
        average = LinearAverage(self.value_bits, self.quotient).average
        return self.written(average(queries, keys, integers(self.value, value)))


def linear_attention(
    query: View,
    key: View,
    value: View,
    *,
    feature: str,
    output: Value,
    output_strides: Strides,
    epsilon: float = 0.0,
) -> Node:
    """Linear attention of three views.

    Args:
        query: [heads, queries, d_head].
        key: [heads, keys, d_head].
        value: [heads, keys, d_value].
        feature: ``relu`` (plus epsilon) or ``elu`` (plus one).
        output: the value that the result becomes.
        output_strides: of head, token and channel in it.
        epsilon: added to each feature of ``relu``, 0 or more.

    Raises:
        UnsupportedOperator: integers may grow too large, or the views are none that a kernel reads.
    """
    check_heads(query, key, value, output, output_strides)
    low, high = (end - value.zero_point for end in integer_range(value.value.dtype))
    try:
        average, largest_query, largest_key = linear_average(
            query.shape[2], key.shape[1], (low, high), value.value.scale / output.scale
        )
    except OverflowError as error:
        raise UnsupportedOperator(
            f"linear attention whose integers may not fit 32 bits: {error}",
            remedy="calibrate again: the step of contexts is out of proportion to that of values",
        ) from error
    tables = (
        feature_table(FEATURES[feature](_reals(view), epsilon), largest)
        for view, largest in ((query, largest_query), (key, largest_key))
    )
    operator = LinearAttention(
        query,
        key,
        value,
        output.shape,
        output.dtype,
        output_strides,
        output.zero_point,
        average.value_bits,
        average.quotient,
    )
    return apply(operator, *loads(query, key, value), *map(constant, tables))


def _reals(view: View) -> Reals:
    """What each byte stands for, by the byte without its sign: [256]."""
    stored = np.arange(256, dtype=np.uint8).view(view.value.dtype)
    return (stored.astype(np.float64) - view.zero_point) * view.value.scale
