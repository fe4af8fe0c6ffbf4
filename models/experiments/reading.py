"""TOML files checked against a description, errors with file, line and key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from entrain.deploy.errors import UsageError
from entrain.deploy.toml import place, read_toml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class Table(BaseModel):
    """A table of a TOML file: its keys by name and type, and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


AnyTable = TypeVar("AnyTable", bound=Table)


def read_table(path: Path, kind: type[AnyTable]) -> AnyTable:
    """The whole file as ``kind``.

    Raises:
        UsageError: the file cannot be read, is not TOML, or has an unknown key, lacks one, or has
            a value of the wrong type; with file and line.
    """
    content = read_toml(path)
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        found = error.errors()
        # A key misspelt is one missing too: what stands in the file says more.
        unknown = (one for one in found if one["type"] == "extra_forbidden")
        raise described(next(unknown, found[0]), path) from error


def described(error: ErrorDetails, path: Path, above: Sequence[str] = ()) -> UsageError:
    """What pydantic found, as an error for a person.

    Args:
        error: one of pydantic's errors.
        path: the file.
        above: the tables in which the keys of the error stand.
    """
    # Pydantic also names the branch of a union it tried; only what stands in the file is said.
    keys = [*above, *(str(key) for key in error["loc"])]
    dotted = ".".join(keys)
    if error["type"] == "extra_forbidden":
        return UsageError(
            f"unknown key {dotted!r}",
            where=place(path, keys),
            remedy="remove it, or correct its spelling; see the other experiments",
        )
    if error["type"] == "missing":
        return UsageError(
            f"the key {dotted!r} is missing",
            where=place(path, keys[:-1]),
            remedy="add it; see the other experiments",
        )
    return UsageError(
        f"{dotted or 'the file'}: {error['msg']}",
        where=place(path, keys),
        remedy="correct the value; see the other experiments",
    )
