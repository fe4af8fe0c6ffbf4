"""Characters of enwik8, the first 100 million bytes of a dump of English Wikipedia (Mahoney 2006).

The archive's layout is one file ``enwik8``, by custom split into its first 90 million bytes, the
next 5 and the last 5. A file ``enwik8_prefix_<bytes>.bin`` that holds its beginning will do too,
split in the same proportions. A character is a byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.errors import DataError

FILE = "enwik8"
FILE_BYTES = 100_000_000
SYMBOLS = 256
# Of a hundred parts.
TRAIN_SHARE, VALIDATION_SHARE = 90, 5

_PREFIX = re.compile(r"enwik8_prefix_(\d+)\.bin")
_FETCH = (
    "Unpack http://mattmahoney.net/dc/enwik8.zip there, or give --data-dir a folder with the file "
    "enwik8 or a beginning of it named enwik8_prefix_<bytes>.bin."
)


@dataclass(frozen=True, eq=False)
class CharacterData:
    """A text in three parts that follow each other.

    Args:
        train: uint8 [N].
        validation: uint8 [N].
        test: uint8 [N].
        source: the file.
    """

    train: NDArray[np.uint8]
    validation: NDArray[np.uint8]
    test: NDArray[np.uint8]
    source: str


def load_characters(folder: Path) -> CharacterData:
    """Read enwik8, or the beginning of it, from a folder.

    Args:
        folder: holds ``enwik8`` or ``enwik8_prefix_<bytes>.bin``; the whole goes first, then the
            longest beginning.

    Raises:
        DataError: if neither is there, or a file has not the length it should have.
    """
    path, length = _find(folder)
    try:
        characters = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise DataError(
            f"the text cannot be read: {error.strerror or error}", where=str(path), remedy=_FETCH
        ) from error
    if len(characters) != length:
        raise DataError(
            f"the file has {len(characters):,} bytes, expected {length:,}",
            where=str(path),
            remedy=_FETCH,
        )
    return split_characters(characters, str(path))


def split_characters(characters: NDArray[np.uint8], source: str) -> CharacterData:
    """The first 90 % for training, the next 5 % for validation, the rest for the test.

    Args:
        characters: uint8 [N].
        source: where they are from.
    """
    first = len(characters) * TRAIN_SHARE // 100
    second = len(characters) * (TRAIN_SHARE + VALIDATION_SHARE) // 100
    return CharacterData(characters[:first], characters[first:second], characters[second:], source)


def _find(folder: Path) -> tuple[Path, int]:
    """The file to read and the length it must have."""
    whole = folder / FILE
    if whole.is_file():
        return whole, FILE_BYTES
    found = [
        (int(match[1]), path)
        for path in (folder.iterdir() if folder.is_dir() else ())
        if (match := _PREFIX.fullmatch(path.name)) and path.is_file()
    ]
    if not found:
        raise DataError("no text of enwik8 here", where=str(folder), remedy=_FETCH)
    length, path = max(found)
    return path, length
