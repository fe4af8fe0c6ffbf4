"""TOML in and out: errors with file and line, and a writer for plain tables."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from entrain.deploy.errors import UsageError


def read_toml(path: Path) -> dict[str, object]:
    """The tables of a TOML file.

    Raises:
        UsageError: the file cannot be read, or is not TOML; with file and line.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        where = f"{path}:{line[1]}" if line else str(path)
        raise UsageError(f"not TOML: {error}", where=where) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error


def line_of(text: str, keys: Sequence[str]) -> int | None:
    """The line, from 1, on which the dotted ``keys`` are set or their table is opened.

    Finds keys written in the usual way (``[table]`` and ``key = value``, one a line); None for
    anything more exotic, such as keys inside an inline table.
    """
    wanted = tuple(keys)
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[+([^\[\]]+)\]+", line)
        if header:
            table = _parts(header[1])
            if table == wanted:
                return number
            continue
        key = re.match(r"\s*([A-Za-z0-9_.\"' -]+?)\s*=", line)
        if key and table + _parts(key[1]) == wanted:
            return number
    return None


def place(path: Path, keys: Sequence[str]) -> str:
    """File and line of the innermost of the dotted ``keys`` that can be found in the file."""
    text = path.read_text(encoding="utf-8")
    for length in range(len(keys), 0, -1):
        line = line_of(text, keys[:length])
        if line is not None:
            return f"{path}:{line}"
    return str(path)


def toml_text(tables: Mapping[str, object]) -> str:
    """TOML of nested mappings of strings, numbers, booleans and lists; None values are left out."""
    return "\n".join(_lines(tables, ())) + "\n"


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _lines(table: Mapping[str, object], name: tuple[str, ...]) -> list[str]:
    present = {key: value for key, value in table.items() if value is not None}
    plain = [
        f"{_key(key)} = {_value(value)}"
        for key, value in present.items()
        if not isinstance(value, Mapping)
    ]
    nested: list[str] = []
    for key, value in present.items():
        if isinstance(value, Mapping):
            path = (*name, key)
            nested += ["", f"[{'.'.join(map(_key, path))}]", *_lines(value, path)]
    return plain + nested


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _string(key)


def _string(text: str) -> str:
    # JSON's escapes are TOML's, except that TOML wants DEL escaped too.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)  # Python's nan and inf are TOML's
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return _string(str(value))
