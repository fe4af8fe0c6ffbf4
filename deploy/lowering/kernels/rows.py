"""Views as the C structures that attention kernels read and write."""

from __future__ import annotations

from entrain.deploy.arithmetic import Quotient
from entrain.deploy.lowering.kernels.c_source import in_order, structure
from entrain.deploy.lowering.operators.heads import AttentionOperator
from entrain.deploy.lowering.views import View

Fields = dict[str, object]  # of a C structure, as :func:`structure` takes them


def rows(view: View) -> str:
    """A ``struct entrain_rows`` of a view [heads, tokens, channels]."""
    head, token, _ = view.strides
    first = f"(const int8_t *){view.value.name}_in + {view.offset}"
    return in_order(first, head, token, view.zero_point, view.value.dtype == "uint8")


def result(operator: AttentionOperator) -> str:
    """A ``struct entrain_result``."""
    head, token, _ = operator.strides
    is_unsigned = operator.dtype == "uint8"
    return in_order("(int8_t *)output", head, token, operator.zero_point, is_unsigned)


def shared_fields(operator: AttentionOperator) -> Fields:
    """What the structure of every attention holds: extents, and where everything lies."""
    heads, queries, d_head = operator.query.shape
    _, keys, d_value = operator.value.shape
    return {
        "heads": heads,
        "queries": queries,
        "keys": keys,
        "d_head": d_head,
        "d_value": d_value,
        "query": rows(operator.query),
        "key": rows(operator.key),
        "value": rows(operator.value),
        "result": result(operator),
    }


def quotient_fields(quotient: Quotient) -> Fields:
    """What it takes to divide by the sum of the weights."""
    return {"quotient": quotient.multiplier, "drop": quotient.drop, "shift": quotient.shift}


def attention_call(mechanism: str, fields: Fields) -> str:
    """C that makes the structure ``struct entrain_<mechanism>`` and calls its attention."""
    return (
        f"const struct entrain_{mechanism} attention = {structure(fields, wide=True)};\n"
        f"entrain_{mechanism}_attention(attention, scratch);"
    )
