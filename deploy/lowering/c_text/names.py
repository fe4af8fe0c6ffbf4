"""Names for people instead of those that TVM counts up."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LOOP = re.compile(r"^( *)for \(int32_t (\w+) = ")
_DECLARED = re.compile(r"^ +(?:int|uint)\d+_t (\w+)(?: = |\[\d+\];|;)")
_LETTERS = "ijkmnpqrst"


def with_plain_names(text: str) -> str:
    """One function with other names.

    Loops are i, j, k, ... by depth; a number that an operator's name carries is left out where the
    name is clear without it.
    """
    head, body = text.split("{", 1)
    taken = set(re.findall(r"\w+", head))
    renamed = _renamed(body, taken)
    if not renamed:
        return text
    every = re.compile(r"\b(" + "|".join(map(re.escape, renamed)) + r")\b")
    return head + "{" + every.sub(lambda found: renamed[found.group()], body)


def _renamed(body: str, taken: set[str]) -> dict[str, str]:
    """New names by old ones."""
    depths = dict(_loops(body))
    letters = [letter for letter in _LETTERS if letter not in taken]
    renamed = {
        name: letters[depth] if depth < len(letters) else f"i{depth}"
        for name, depth in depths.items()
    }
    used = taken | set(letters) | set(renamed.values()) | set(re.findall(r"\w+", body))
    used -= depths.keys()
    for line in body.split("\n"):
        found = _DECLARED.match(line)
        if found is None or found.group(1) in renamed:
            continue
        name = found.group(1)
        used.discard(name)
        renamed[name] = _unused(_stem(name, body), used)
        used.add(renamed[name])
    return {old: new for old, new in renamed.items() if old != new}


def _loops(body: str) -> Iterator[tuple[str, int]]:
    """Loop variables, and in how many loops each stands."""
    around: list[int] = []
    for line in body.split("\n"):
        found = _LOOP.match(line)
        if found is not None:
            indentation = len(found.group(1))
            around = [each for each in around if each < indentation]
            yield found.group(2), len(around)
            around.append(indentation)


def _stem(name: str, body: str) -> str:
    """What a variable is called: an operator, a place, or a value."""
    if re.fullmatch(r"cse_v\d+", name):
        inside = re.search(rf"\[[^\]]*\b{name}\b", body)
        return "at" if inside else "value"
    if re.fullmatch(r"v_(_\d+)?", name):
        return "value"
    return re.sub(r"(_\d+)+$", "", name)


def _unused(stem: str, used: set[str]) -> str:
    name, count = stem, 1
    while name in used:
        count += 1
        name = f"{stem}_{count}"
    return name
