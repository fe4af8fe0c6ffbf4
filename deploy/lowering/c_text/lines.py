"""Long lines of C, broken where they hang together least."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

WIDTH = 100
_FIRST, _FURTHER = 8, 4  # how much further what is left of a broken line is indented
# after these a line may be broken, the loosest first
_BREAKS = (
    (",", ";"),
    ("?", ":"),
    ("||", "&&"),
    ("+", "-", "|", "^", "&", "<<", ">>"),
    ("*", "/", "%"),
)
_RANK = {sign: rank for rank, signs in enumerate(_BREAKS) for sign in signs}
_BREAK = re.compile(r"(?:[,;]|(?<= )(?:\|\||&&|<<|>>|[-+*/%|^&?:]))(?= )")
_OPENING, _CLOSING = "([{", ")]}"


def wrapped(text: str) -> str:
    """The text with lines of WIDTH columns at most; comments, directives and strings stay."""
    return "\n".join(part for line in text.split("\n") for part in _lines(line))


def _lines(line: str) -> list[str]:
    head = line.lstrip(" ")
    if head.startswith(("/*", "*", "#", "//")) or '"' in line:
        return [line]
    return _laid_out(head, len(line) - len(head), _FIRST)


def _laid_out(text: str, indentation: int, further: int) -> list[str]:
    """One line, or several of which all but the first are indented further."""
    if indentation + len(text) <= WIDTH:
        return [" " * indentation + text]
    assigned = text.find(" = ") + 2
    rest = indentation + further
    if assigned > 1 and rest + len(text) - assigned - 1 <= WIDTH:
        return [" " * indentation + text[:assigned], " " * rest + text[assigned + 1 :]]
    pieces = _pieces(text)
    if len(pieces) == 1:
        return [" " * indentation + text]
    first, *others = pieces
    while others and first[-1] not in _OPENING and _fits(first, others[0], WIDTH - indentation):
        first += f" {others.pop(0)}"
    lines = _laid_out(first, indentation, _FURTHER)
    for piece in _joined(others, WIDTH - rest):
        lines += _laid_out(piece, rest, _FURTHER)
    return lines


@dataclass(frozen=True)
class _Break:
    """A place where a line may be broken; the less its rank, the better."""

    place: int
    rank: tuple[int, int]
    opening: int  # where the innermost parenthesis around it opens; -1 if none does


def _pieces(text: str) -> list[str]:
    """The text, broken at all places of the best rank."""
    breaks = list(_breaks(text))
    if not breaks:
        return [text]
    best = min(found.rank for found in breaks)
    chosen = [found for found in breaks if found.rank == best]
    places = {found.place for found in chosen}
    # what stands in parentheses begins a line, unless they close on another line
    openings = {found.opening for found in chosen if found.opening >= 0}
    places |= {opening + 1 for opening in openings if _closes(text, opening)}
    ends = [0, *sorted(places), len(text)]
    return [text[a:b].strip(" ") for a, b in pairwise(ends)]


def _breaks(text: str) -> Iterator[_Break]:
    signs = {found.end(): found.group() for found in _BREAK.finditer(text)}
    opened: list[int] = []
    for place, sign in enumerate(text):
        if place in signs:
            opening = opened[-1] if opened else -1
            yield _Break(place, (len(opened), _RANK[signs[place]]), opening)
        if sign in _OPENING:
            opened.append(place)
        elif sign in _CLOSING and opened:
            opened.pop()


def _closes(text: str, opening: int) -> bool:
    depth = 0
    for sign in text[opening:]:
        depth += (sign in _OPENING) - (sign in _CLOSING)
        if depth == 0:
            return True
    return False


def _joined(pieces: list[str], width: int) -> list[str]:
    """As many of the pieces in a line as it holds."""
    lines: list[str] = []
    for piece in pieces:
        if lines and _fits(lines[-1], piece, width):
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return lines


def _fits(line: str, piece: str, width: int) -> bool:
    return len(line) + 1 + len(piece) <= width
