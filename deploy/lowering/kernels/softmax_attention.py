"""Softmax attention as a call of ``entrain_softmax_attention``."""

from __future__ import annotations

from entrain.deploy.lowering.graph import Layer
from entrain.deploy.lowering.kernels.c_source import rounded_up
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.kernels.rows import attention_call, quotient_fields, shared_fields
from entrain.deploy.lowering.operators.softmax_attention import SoftmaxAttention

MVE_ROWS = 3


def match_softmax_attention(layer: Layer) -> Kernel | None:
    """The kernel of a layer that is softmax attention."""
    operator = layer.expression.operator
    if not isinstance(operator, SoftmaxAttention):
        return None
    table = layer.expression.operands[-1].operator.reference()
    fields = {
        **shared_fields(operator),
        "table": "table",
        "entries": table.size,
        "multiplier": operator.multiplier,
        **quotient_fields(operator.quotient),
    }
    return Kernel(
        layer,
        "entrain_softmax_attention.h",
        attention_call("softmax", fields),
        (("table", table),),
        max(scratch_bytes(operator).values()),
    )


def scratch_bytes(operator: SoftmaxAttention) -> dict[str, int]:
    """What each instruction set's kernel keeps: see the structures in its header."""
    _, keys, d_value = operator.value.shape
    d_head = operator.query.shape[2]
    pairs, channels = rounded_up(keys, 2), rounded_up(d_head, 4)
    lanes = rounded_up(keys, 8)
    return {
        "scalar": 8 * d_head + 4 * keys,
        "dsp": 2 * (pairs * channels + rounded_up(d_value, 4) * pairs + 2 * channels + 2 * pairs),
        "mve": pairs * rounded_up(d_head, 16)
        + lanes * (4 + 2 + 2 * rounded_up(d_value, 2) + MVE_ROWS * (4 + 2))
        + MVE_ROWS * 4 * rounded_up(d_value, 4),
    }
