"""CMSIS-DSP's C sources, from the source distribution of the package ``cmsisdsp``.

They are fetched by pip, so from wherever it is set up to look, checked against their digest, and
kept in the cache; nothing of them is part of Entrain (Apache-2.0, as Entrain is).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from entrain.deploy.errors import ToolError
from entrain.deploy.files import replacing_folder
from entrain.models.data.cache import cache_folder

VERSION = "1.10.3"
DIGEST = "307d32298faa7c58db912851027fce35f886fec7eb1a27c4b309ce1a97f47519"  # SHA-256
ARCHIVE = f"cmsisdsp-{VERSION}.tar.gz"
GIVEN = "ENTRAIN_CMSISDSP"  # environment: an archive that is at hand

# What the front end is made of, and what that includes.
_SOURCES = (
    "Source/CommonTables/arm_common_tables.c",
    "Source/CommonTables/arm_const_structs.c",
    "Source/TransformFunctions/arm_bitreversal.c",
    "Source/TransformFunctions/arm_bitreversal2.c",
    "Source/TransformFunctions/arm_cfft_q31.c",
    "Source/TransformFunctions/arm_cfft_radix4_q31.c",
)
_HEADERS = ("Include", "PrivateInclude")


@dataclass(frozen=True)
class CmsisDsp:
    """The sources as they lie on this machine.

    Attributes:
        folder: what the archive holds, as far as it is needed, and its licence.
    """

    folder: Path

    @property
    def sources(self) -> list[Path]:
        """The C files to compile."""
        return [self.folder / name for name in _SOURCES]

    @property
    def includes(self) -> list[Path]:
        """The folders of its headers."""
        return [self.folder / name for name in _HEADERS]


def cmsis_dsp() -> CmsisDsp:
    """The sources, fetched if they are not here yet.

    Raises:
        ToolError: they cannot be fetched, or are not those that the digest belongs to.
        UsageError: the cache cannot be written.
    """
    folder = cache_folder() / f"cmsisdsp-{VERSION}-{DIGEST[:8]}"
    if not folder.is_dir():
        with replacing_folder(folder) as made, tempfile.TemporaryDirectory() as temporary:
            given = os.environ.get(GIVEN)
            archive = Path(given) if given else _fetched(Path(temporary))
            _check(archive)
            _unpack(archive, made)
    return CmsisDsp(folder)


def _fetched(folder: Path) -> Path:
    options = ["--no-deps", "--no-binary", "cmsisdsp", "--no-build-isolation", "-d", str(folder)]
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
    found = subprocess.run(
        [*command, *options, f"cmsisdsp=={VERSION}"], capture_output=True, text=True, check=False
    )
    archive = folder / ARCHIVE
    if found.returncode or not archive.is_file():
        said = found.stderr.strip().splitlines()
        raise ToolError(
            f"CMSIS-DSP's sources cannot be fetched: {said[-1] if said else 'pip says nothing'}",
            where="pip download cmsisdsp",
            remedy=f"connect to a package index, or give {ARCHIVE} by {GIVEN}=FILE",
        )
    return archive


def _check(archive: Path) -> None:
    try:
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    except OSError as error:
        raise ToolError(
            f"CMSIS-DSP's archive cannot be read: {error.strerror}",
            where=str(archive),
            remedy=f"let {GIVEN} name {ARCHIVE}, or unset it",
        ) from error
    if digest != DIGEST:
        raise ToolError(
            f"this is not {ARCHIVE}: its SHA-256 is {digest}, not {DIGEST}",
            where=str(archive),
            remedy=f"fetch cmsisdsp {VERSION} from PyPI: other sources might hear other sounds",
        )


def _unpack(archive: Path, folder: Path) -> None:
    """What is needed of it, without its topmost folder."""
    wanted = {*_SOURCES, "LICENSE"}
    with tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.partition("/")[2]
            if member.isfile() and (name in wanted or name.startswith(tuple(_HEADERS))):
                content = tar.extractfile(member)
                if content is not None:
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_bytes(content.read())
