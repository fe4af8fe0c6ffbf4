"""Linear attention as a call of ``entrain_linear_attention``."""

from __future__ import annotations

from entrain.deploy.lowering.graph import Layer
from entrain.deploy.lowering.kernels.c_source import rounded_up
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.kernels.rows import attention_call, quotient_fields, shared_fields
from entrain.deploy.lowering.operators.linear_attention import LinearAttention

MVE_ROWS = 3


def match_linear_attention(layer: Layer) -> Kernel | None:
    """The kernel of a layer that is linear attention."""
    operator = layer.expression.operator
    if not isinstance(operator, LinearAttention):
        return None
    tables = [node.operator.reference() for node in layer.expression.operands[3:]]
    fields = {
        **shared_fields(operator),
        "query_features": "query_features",
        "key_features": "key_features",
        "value_bits": operator.value_bits,
        **quotient_fields(operator.quotient),
    }
    return Kernel(
        layer,
        "entrain_linear_attention.h",
        attention_call("linear", fields),
        (("query_features", tables[0]), ("key_features", tables[1])),
        max(scratch_bytes(operator).values()),
    )


def scratch_bytes(operator: LinearAttention) -> dict[str, int]:
    """What each instruction set's kernel keeps: see the structures in its header."""
    _, keys, d_value = operator.value.shape
    d_head = operator.query.shape[2]
    pairs, features = rounded_up(keys, 2), rounded_up(d_head, 2)
    lanes, width = rounded_up(keys, 8), rounded_up(d_head, 8)
    return {
        "scalar": 4 * d_head * (d_value + 1) + 2 * (2 * keys + 2 * d_head + d_head * (d_value + 1)),
        "dsp": 4 * d_head
        + 2
        * (
            features * pairs
            + rounded_up(d_value, 4) * pairs
            + rounded_up(d_value + 1, 2) * features
            + 2 * features
        ),
        "mve": 4 * rounded_up(d_head, MVE_ROWS)
        + 4 * MVE_ROWS * rounded_up(d_value + 1, 4)
        + 2
        * (
            rounded_up(d_head, MVE_ROWS) * lanes
            + rounded_up(d_value, 2) * lanes
            + rounded_up(d_value + 1, 2) * width
            + MVE_ROWS * width
        ),
    }
