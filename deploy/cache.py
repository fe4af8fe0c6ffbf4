"""Where things are kept that can be made again: the emulator's plugin, emulated flash memories."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``$ENTRAIN_CACHE_DIR``, else ``$XDG_CACHE_HOME/entrain``, else ``~/.cache/entrain``.

    The folder need not exist yet.
    """
    chosen = os.environ.get("ENTRAIN_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "entrain"
