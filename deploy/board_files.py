"""Files that describe a board, <name>/board.toml: read, checked, and found by the board's name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from entrain.deploy.errors import BoardError, UsageError
from entrain.deploy.toml import place, read_toml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Text = Annotated[str, Field(min_length=1)]


class BoardFile(BaseModel):
    """What every board's file says, and no key beyond those of its kind.

    Attributes:
        name: the folder's name, by which commands call the board.
        title: the board's full name, for a person.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Text
    title: Text


_Board = TypeVar("_Board", bound=BoardFile)

_UNKNOWN = {"extra_forbidden", "unexpected_keyword_argument"}


def read_board_file(path: Path, model: type[_Board]) -> _Board:
    """What the file ``path`` (…/<name>/board.toml) says, whose ``name`` is its folder's.

    Raises:
        BoardError: the file cannot be read, is not TOML, has an unknown key, lacks one, has a value
            that does not make sense, or another name than its folder; with file and line.
    """
    try:
        board = model.model_validate(read_toml(path))
    except UsageError as error:
        raise BoardError(error.what, where=error.where, remedy=error.remedy) from error
    except ValidationError as error:
        raise _described(error.errors()[0], path, model) from error
    if board.name != path.parent.name:
        raise BoardError(
            f"the board calls itself {board.name!r} but its folder is {path.parent.name!r}",
            where=place(path, ["name"]),
            remedy="give both the same name",
        )
    return board


def board_named(name: str, known: Mapping[str, _Board], kind: str) -> _Board:
    """The board called ``name``.

    Args:
        name: of the board.
        known: all boards of its kind, by name.
        kind: what they are called, for the error.

    Raises:
        BoardError: there is none; the error lists those that exist.
    """
    if name not in known:
        raise BoardError(
            f"no {kind} is called {name!r}", remedy=f"boards that exist: {', '.join(known)}"
        )
    return known[name]


def _described(error: ErrorDetails, path: Path, model: type[BoardFile]) -> BoardError:
    keys = [str(key) for key in error["loc"]]
    dotted = ".".join(keys)
    if error["type"] in _UNKNOWN:
        return BoardError(
            f"unknown key {dotted!r}",
            where=place(path, keys),
            remedy="remove it, or correct its spelling; keys that exist: "
            f"{', '.join(_keys(model, keys[0]))}",
        )
    if error["type"] == "missing":
        return BoardError(
            f"the key {dotted!r} is missing", where=str(path), remedy="add it; see the other boards"
        )
    return BoardError(
        f"{dotted or 'the file'}: {error['msg']}",
        where=place(path, keys),
        remedy="correct the value; see the other boards",
    )


def _keys(model: type[BoardFile], key: str) -> list[str]:
    """The keys beside one that is unknown: of the file, or of the table of that name."""
    table = getattr(model.model_fields.get(key), "annotation", model)
    nested = getattr(table, "model_fields", None) or getattr(table, "__dataclass_fields__", None)
    return list(nested or model.model_fields)
