"""How long work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable

Told = Callable[[int, int, str], None]  # done, of how many, what


def tell_nobody(_done: int, _total: int, _what: str) -> None:
    """For work that nobody watches."""
