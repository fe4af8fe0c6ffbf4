"""Words and signs of a line of C."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"\s*([A-Za-z_]\w*|\d[\w.]*|<<=|>>=|[-+*/%&|^=!<>]=|<<|>>|&&|\|\||\+\+|--|->|\S)"
)


def tokens_of(line: str) -> list[str]:
    """All of them, without the space between."""
    return _TOKEN.findall(line)


def is_name(token: str) -> bool:
    """Whether it is an identifier, a keyword or a type."""
    return token[0].isalpha() or token[0] == "_"
