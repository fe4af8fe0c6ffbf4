"""Fetching the official Speech Commands archive: checked, resumed, unpacked with care."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from entrain.deploy.errors import DataError

# Version 0.02, 2,428,923,189 bytes (Warden 2018).
OFFICIAL = "http://download.tensorflow.org/data/speech_commands_v0.02.tar.gz"
OFFICIAL_SHA256 = "af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58"

_CHUNK = 1 << 20
_SECONDS_OF_SILENCE = 60

Progress = Callable[[int, int | None], None]


def download_speech_commands(
    folder: Path,
    url: str = OFFICIAL,
    sha256: str = OFFICIAL_SHA256,
    on_progress: Progress = lambda done, total: None,  # noqa: ARG005
) -> Path:
    """Fetch and unpack the archive.

    What was fetched before an interruption lies beside the folder as ``<folder>.download`` and is
    gone on with the next time. The folder appears only when everything is unpacked.

    Args:
        folder: where the words' folders shall be; it must not exist, or be empty.
        url: of a .tar.gz archive.
        sha256: of the archive, in hexadecimal.
        on_progress: called with the bytes fetched and, if known, the bytes there are.

    Returns:
        The folder.

    Raises:
        DataError: if the folder is in use, the server cannot be reached, the transfer breaks off,
            the checksum differs, or the archive is damaged or reaches outside the folder.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise DataError(
            "the folder to download into is already in use",
            where=str(folder),
            remedy="Name a new folder, or use the one there with --data-dir.",
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    archive = folder.with_name(folder.name + ".download")
    _fetch(url, archive, on_progress)
    _verify(archive, sha256, url)
    _unpack(archive, folder)
    archive.unlink()
    return folder


def _fetch(url: str, archive: Path, on_progress: Progress) -> None:
    """Append what is missing of the archive, or all of it where the server cannot resume."""
    have = archive.stat().st_size if archive.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS_OF_SILENCE) as reply:
            resumed = reply.status == 206
            start = have if resumed else 0
            length = reply.headers.get("Content-Length")
            total = start + int(length) if length else None
            with archive.open("ab" if resumed else "wb") as file:
                _copy(reply, file, start, total, on_progress)
    except urllib.error.HTTPError as error:
        # The server has nothing beyond what is here: the archive is whole, the checksum will tell.
        if error.code == 416 and have:
            return
        raise _broken(url, error) from error
    except (OSError, HTTPException, ValueError) as error:
        raise _broken(url, error) from error


def _copy(
    reply: HTTPResponse, file: BinaryIO, start: int, total: int | None, on_progress: Progress
) -> None:
    done = start
    on_progress(done, total)
    while chunk := reply.read1(_CHUNK):
        file.write(chunk)
        done += len(chunk)
        on_progress(done, total)
    if total is not None and done < total:
        raise ConnectionError(f"the transfer broke off after {done} of {total} bytes")


def _broken(url: str, error: Exception) -> DataError:
    return DataError(
        f"the download failed ({error})",
        where=url,
        remedy="Run the same command again: it goes on where it stopped.",
    )


def _verify(archive: Path, sha256: str, url: str) -> None:
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256.lower():
        archive.unlink()
        raise DataError(
            f"the archive's SHA-256 is {found}, expected {sha256}; it was deleted",
            where=url,
            remedy="Download it again; if it differs again, the server's copy is not the official.",
        )


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack beside the folder, then rename."""
    partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix=folder.name + "."))
    try:
        with tarfile.open(archive, "r:*") as tar:
            for member in tar:
                _extract(tar, member, partial)
        partial.chmod(0o755)
        # Renaming over an empty folder is allowed.
        partial.replace(folder)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"the archive cannot be unpacked ({error})",
            where=str(archive),
            remedy="Look for free space on the disk, or delete this file and download it again.",
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write one file of the archive. Links and devices have no place in a data set."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
        raise DataError(
            f"the archive holds {member.name!r}, which is no plain file inside it",
            where=str(tar.name),
            remedy="Nothing was unpacked. Do not trust this archive.",
        )
    target = folder.joinpath(*path.parts)
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    if source is not None:
        with source, target.open("wb") as file:
            shutil.copyfileobj(source, file, _CHUNK)
