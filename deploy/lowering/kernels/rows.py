"""Views as the C structures that attention kernels read and write."""

from __future__ import annotations

from entrain.deploy.arithmetic import Quotient
from entrain.deploy.lowering.operators.heads import AttentionOperator
from entrain.deploy.lowering.views import View


def rows(view: View) -> str:
    """A ``struct entrain_rows`` of a view [heads, tokens, channels]."""
    head, token, _ = view.strides
    first = f"(const int8_t *){view.value.name}_in + {view.offset}"
    return f"{{{first}, {head}, {token}, {view.zero_point}, {_is_unsigned(view.value.dtype)}}}"


def result(operator: AttentionOperator) -> str:
    """A ``struct entrain_result``."""
    head, token, _ = operator.strides
    is_unsigned = _is_unsigned(operator.dtype)
    return f"{{(int8_t *)output, {head}, {token}, {operator.zero_point}, {is_unsigned}}}"


def shared_fields(operator: AttentionOperator) -> dict[str, str]:
    """What the structure of every attention holds: extents, and where everything lies."""
    heads, queries, d_head = operator.query.shape
    _, keys, d_value = operator.value.shape
    return {
        "heads": str(heads),
        "queries": str(queries),
        "keys": str(keys),
        "d_head": str(d_head),
        "d_value": str(d_value),
        "query": rows(operator.query),
        "key": rows(operator.key),
        "value": rows(operator.value),
        "result": result(operator),
    }


def quotient_fields(quotient: Quotient) -> dict[str, str]:
    """What it takes to divide by the sum of the weights."""
    return {
        "quotient": str(quotient.multiplier),
        "drop": str(quotient.drop),
        "shift": str(quotient.shift),
    }


def call(function: str, fields: dict[str, str]) -> str:
    """C that makes the structure ``struct <function's name but for _attention>`` and calls."""
    lines = [f"    .{name} = {value}," for name, value in fields.items()]
    structure = function.removesuffix("_attention")
    return "\n".join(
        [
            f"const struct {structure} attention = {{",
            *lines,
            "};",
            f"{function}(attention, scratch);",
        ]
    )


def rounded_up(count: int, multiple: int) -> int:
    """The next multiple, if it is none."""
    return -(-count // multiple) * multiple


def _is_unsigned(dtype: str) -> str:
    return "true" if dtype == "uint8" else "false"
