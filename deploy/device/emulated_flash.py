"""The flash memory of an emulated board: it keeps its image from one command to the next."""

from __future__ import annotations

from pathlib import Path

from entrain.deploy.cache import cache_folder
from entrain.deploy.errors import DeviceMissing


def emulated_flash(board: str) -> Path:
    """The file that stands for the flash memory of ``board``."""
    return cache_folder() / "emulator" / f"flash-{board}.elf"


def flashed_image(board: str) -> Path:
    """The image in the emulated board's flash memory.

    Raises:
        DeviceMissing: nothing was flashed yet.
    """
    image = emulated_flash(board)
    if not image.is_file():
        raise DeviceMissing(
            "nothing has been flashed on this emulated board yet",
            where=f"qemu:{board}",
            remedy=f"entrain flash --board {board}",
        )
    return image
