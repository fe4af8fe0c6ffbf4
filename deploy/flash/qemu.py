"""Flashing an emulated board: its flash memory is a file that outlives the machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from entrain.deploy.boards import Board
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.device.emulated_flash import emulated_flash
from entrain.deploy.errors import DeviceMissing
from entrain.deploy.files import writing_whole


def flash(board: Board, image: Path) -> None:
    """Start the machine with ``image``; if it answers as ``board``, the machine keeps the image.

    Raises:
        DeviceError: the image does not start, or is another board's.
        ToolError: the emulator is not installed.
    """
    with connect(QemuAddress(board.name), image) as client:
        answered = client.name()
    if answered != board.name:
        raise DeviceMissing(
            f"the image answers as {answered!r}",
            where=str(image),
            remedy=f"build it for {board.name}",
        )
    with writing_whole(emulated_flash(board.name)) as temporary:
        shutil.copyfile(image, temporary)
