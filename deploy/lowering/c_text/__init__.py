"""C that a program wrote, laid out for people: names, parentheses, lines."""

from __future__ import annotations

from entrain.deploy.lowering.c_text.expressions import without_needless_parentheses
from entrain.deploy.lowering.c_text.lines import wrapped
from entrain.deploy.lowering.c_text.names import with_plain_names

__all__ = ["readable", "wrapped"]


def readable(text: str) -> str:
    """One function as TVM prints it, which computes the same afterwards."""
    named = with_plain_names(text)
    lines = (without_needless_parentheses(line) for line in named.split("\n"))
    return wrapped("\n".join(_indented(line) for line in lines))


def _indented(line: str) -> str:
    """Four spaces instead of two."""
    return line[: len(line) - len(line.lstrip(" "))] + line
