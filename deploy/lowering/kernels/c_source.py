"""The C that calls of kernels are written in: initialisers, arguments, and sizes rounded up."""

from __future__ import annotations

from collections.abc import Mapping

from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.views import View


def source_of(view: View) -> str:
    """C of where a view begins."""
    offset = f" + {view.offset}" if view.offset else ""
    return f"{view.value.name}_in{offset}"


def structure(fields: Mapping[str, object], *, wide: bool = False) -> str:
    """A C initialiser by names, one a line if ``wide``; strings stand as they are."""
    texts = [f".{name} = {_literal(value)}" for name, value in fields.items()]
    return "{\n" + "".join(f"    {text},\n" for text in texts) + "}" if wide else in_order(*texts)


def in_order(*values: object) -> str:
    """A C initialiser without names; strings stand as they are."""
    return "{" + ", ".join(map(_literal, values)) + "}"


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def c_call(function: str, operands: tuple[str, ...], fields: str) -> str:
    """A call whose last argument is a ``struct`` of the function's name."""
    return f"{function}({', '.join(operands)}, (struct {function}){fields});"


def declared(multipliers: Array) -> tuple[tuple[tuple[str, Array], ...], str]:
    """Multipliers as a constant array, or C that declares a single one, which becomes a literal."""
    if multipliers.size > 1:
        return (("multipliers", multipliers),), ""
    return (), f"static const int32_t multipliers[1] = {in_order(multipliers[0])};\n"


def rounded_up(count: int, multiple: int) -> int:
    """The next multiple, if it is none."""
    return -(-count // multiple) * multiple
