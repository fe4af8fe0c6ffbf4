"""What a test needs installed."""

from __future__ import annotations

import shutil

import pytest

from entrain.deploy.build import PROGRAMS

EMULATOR = "qemu-system-arm"


def require_emulator(*more: str) -> None:
    """Skip the test, saying what is missing, where firmware cannot be built or emulated."""
    wanted = [*PROGRAMS, EMULATOR, *more]
    missing = [program for program in wanted if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
