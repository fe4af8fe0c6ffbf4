"""Samples that are slow to make, kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from entrain.models.data.clips import Samples


def cache_folder() -> Path:
    """Where this user's caches are: ``$XDG_CACHE_HOME/entrain``, or ``~/.cache/entrain``."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "entrain"


def digest(*parts: object) -> str:
    """A short name for what `parts` say: the same for the same text, else another."""
    text = "\n".join(str(part) for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def cached_array(kind: str, key: str, make: Callable[[], Samples]) -> Samples:
    """Read samples from the cache, or make and keep them.

    A cache that cannot be read is made anew; one that cannot be written is done without.

    Args:
        kind: subfolder, such as ``speech``.
        key: from `digest` of everything the samples depend on.
        make: makes the samples.
    """
    path = cache_folder() / kind / f"{key}.npy"
    kept = _read(path)
    if kept is not None:
        return kept
    samples = make()
    _write(path, samples)
    return samples


def _read(path: Path) -> Samples | None:
    try:
        samples: Samples = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return samples if samples.dtype == np.int16 else None


def _write(path: Path, samples: Samples) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".partial")
    except OSError:
        return
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            np.save(file, samples)
        partial.replace(path)
    except OSError:
        return
    finally:
        partial.unlink(missing_ok=True)
