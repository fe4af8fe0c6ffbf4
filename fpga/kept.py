"""Results that are made once: a folder named by the content of everything that it was made of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from entrain.deploy.files import replacing_folder


def kept(
    folder: Path, stage: str, made_of: Iterable[str | bytes], make: Callable[[Path, Path], None]
) -> Path:
    """The folder ``folder``/<stage>-<hash>, filled by ``make`` unless it was filled before.

    Beside it lies the log, of the same name. A folder appears whole or not at all; the log stays
    in both cases.

    Args:
        folder: where results are kept.
        stage: what is made.
        made_of: everything that the result depends on.
        make: fills the folder that is its first argument; its second is the log to add to.

    Raises:
        UsageError: the folder cannot be written.
    """
    place = folder / f"{stage}-{_digest(made_of)}"
    if not place.is_dir():
        with replacing_folder(place) as made:
            log = log_of(place)
            log.unlink(missing_ok=True)
            make(made, log)
    return place


def log_of(place: Path) -> Path:
    """The log of the result that lies in the folder ``place``."""
    return place.with_name(place.name + ".log")


def _digest(made_of: Iterable[str | bytes]) -> str:
    digest = hashlib.sha256()
    for part in made_of:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()[:16]
