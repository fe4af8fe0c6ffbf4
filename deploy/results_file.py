"""results.json: written whole, and read with every fault named."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from entrain.deploy.errors import ResultsError
from entrain.deploy.files import write_whole
from entrain.deploy.results import SCHEMA_VERSION, Results


def row_values(results: Results) -> list[dict[str, object]]:
    """The rows as JSON values, as ``--json`` prints them."""
    return [row.model_dump(mode="json", by_alias=True) for row in results.results]


def write_results(path: Path, results: Results) -> None:
    """Write ``results`` to ``path``, whole.

    Raises:
        UsageError: the file cannot be written.
    """
    write_whole(path, results.model_dump_json(by_alias=True, indent=1) + "\n")


def read_results(path: Path) -> Results:
    """Read a results.json.

    Raises:
        ResultsError: there is no such file, it is not JSON, it is of another schema, or a field is
            missing, unknown or wrong; the field is named.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ResultsError(
            "there is no such file",
            where=str(path),
            remedy="`entrain compare` measures and writes one",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ResultsError(f"cannot be read: {error}", where=str(path)) from error
    except json.JSONDecodeError as error:
        raise ResultsError(
            f"not JSON: {error.msg}",
            where=f"{path}:{error.lineno}",
            remedy="the file is damaged; measure again with `entrain compare`",
        ) from error
    return _validated(path, value)


def _validated(path: Path, value: object) -> Results:
    schema = value.get("schema") if isinstance(value, dict) else None
    if schema != SCHEMA_VERSION:
        raise ResultsError(
            f"schema is {schema!r}; this version of Entrain reads schema {SCHEMA_VERSION}",
            where=str(path),
            remedy="measure again with this version's `entrain compare`",
        )
    try:
        return Results.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise ResultsError(
            f"{field_path(first['loc'])}: {first['msg']}",
            where=str(path),
            remedy="the file is damaged or was changed by hand; measure again, or mend that field",
        ) from error


def field_path(location: tuple[int | str, ...]) -> str:
    """A pydantic location as a person writes it: ``results[0].accuracy.device``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.lstrip(".") or "the file"
