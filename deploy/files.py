"""Files written whole: a reader sees the old one or the new one, never half of one."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from entrain.deploy.errors import UsageError


@contextlib.contextmanager
def writing_whole(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` to write to; it takes the name when the block succeeds.

    The temporary name keeps the suffix, for writers that go by it (``numpy.savez``). If the block
    raises, the temporary file is removed and whatever stood at ``path`` is left as it was.

    Raises:
        UsageError: the folder cannot be made, or the file cannot be written there.
    """
    if not path.name:
        raise UsageError(
            "this is a folder, not a file to write", where=str(path), remedy="name a file"
        )
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(4)}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as written:  # on the disk before it takes the name
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        raise UsageError(
            f"cannot write the file: {error.strerror or error}",
            where=str(path),
            remedy="check the folder's permissions and the space left on the disk",
        ) from error
    finally:
        with contextlib.suppress(OSError):  # gone already, or its folder was never made
            temporary.unlink()


def write_whole(path: Path, data: bytes | str) -> None:
    """Write ``data`` (text as UTF-8) to ``path``, making its folder if need be.

    Raises:
        UsageError: the folder cannot be made, or the file cannot be written there.
    """
    content = data.encode() if isinstance(data, str) else data
    with writing_whole(path) as temporary:
        temporary.write_bytes(content)


@contextlib.contextmanager
def folder_if_whole(folder: Path) -> Iterator[None]:
    """If the block raises, what it made of ``folder`` and of those around it goes where empty."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # never made, or something is in it
            for each in missing:
                each.rmdir()
        raise


@contextlib.contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder beside ``folder`` to fill; it takes the name when the block succeeds.

    If the block raises, it is removed and whatever stood at ``folder`` is left as it was.

    Raises:
        UsageError: the folder cannot be made or renamed.
    """
    mark = secrets.token_hex(4)
    made, before = (folder.with_name(f".{folder.name}-{mark}-{which}") for which in ("new", "old"))
    try:
        made.mkdir(parents=True)
        yield made
        if folder.exists():
            folder.replace(before)
        made.replace(folder)
    except OSError as error:
        raise UsageError(
            f"cannot write the folder: {error.strerror or error}",
            where=str(folder),
            remedy="check the permissions and the space left on the disk",
        ) from error
    finally:
        for leftover in (made, before):
            shutil.rmtree(leftover, ignore_errors=True)
