"""What firmware is built for and measured on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from entrain.deploy.boards import Board

if TYPE_CHECKING:
    from entrain.deploy.device.address import Address


@dataclass(frozen=True)
class Target:
    """A device to measure on and the board it is.

    Args:
        board: what the firmware is built for.
        address: where it answers; an emulator is started with the image.
    """

    board: Board
    address: Address
