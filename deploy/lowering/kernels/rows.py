"""Views as the C structures that attention kernels read and write."""

from __future__ import annotations

from entrain.deploy.lowering.operators.heads import Strides
from entrain.deploy.lowering.views import View


def rows(view: View) -> str:
    """A ``struct entrain_rows`` of a view [heads, tokens, channels]."""
    head, token, _ = view.strides
    first = f"(const int8_t *){view.value.name}_in + {view.offset}"
    return f"{{{first}, {head}, {token}, {view.zero_point}, {_is_unsigned(view.value.dtype)}}}"


def result(strides: Strides, zero_point: int, dtype: str) -> str:
    """A ``struct entrain_result``."""
    head, token, _ = strides
    return f"{{(int8_t *)output, {head}, {token}, {zero_point}, {_is_unsigned(dtype)}}}"


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
