"""Flashers, one a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from entrain.deploy.boards import Board
from entrain.deploy.errors import BoardError
from entrain.deploy.flash import qemu

# What a board file may name as its flasher.
FLASHERS: dict[str, Callable[[Board, Path], None]] = {"qemu": qemu.flash}


def flash(board: Board, image: Path) -> None:
    """Put ``image`` on ``board``.

    Raises:
        BoardError: the board names a flasher that does not exist.
        DeviceError: the board is missing, refuses, or does not start.
    """
    if board.flasher not in FLASHERS:
        raise BoardError(
            f"there is no flasher {board.flasher!r}",
            where=board.name,
            remedy=f"flashers that exist: {', '.join(FLASHERS)}",
        )
    FLASHERS[board.flasher](board, image)
