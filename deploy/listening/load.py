"""How much of a core's time a spotter takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from entrain.deploy.boards import Board
from entrain.deploy.listening.board import Work
from entrain.deploy.listening.settings import SpotterSettings


@dataclass(frozen=True)
class Load:
    """Shares of the time that the sound lasts.

    Args:
        front_end: of the features.
        network: of the network and the decisions.
        kind: modelled from counted instructions, or measured by the device's clock.
        mhz: of the core; None where it was measured.
    """

    front_end: float
    network: float
    kind: Literal["modelled", "measured"]
    mhz: float | None

    @property
    def whole(self) -> float:
        """Both together."""
        return self.front_end + self.network


def load_of(
    work: Work, settings: SpotterSettings, board: Board | None, mhz: float | None = None
) -> Load | None:
    """The load of some hops; None before the first.

    Args:
        work: what they took.
        settings: how long a hop is.
        board: the emulated board, whose instructions were counted; None for a real one.
        mhz: a clock to model instead of the board's own.
    """
    if work.hops == 0:
        return None
    seconds = work.hops * settings.hop_seconds
    if board is None or board.cost is None:
        front_end, network = work.front_end_us / 1e6, work.network_us / 1e6
        return Load(front_end / seconds, network / seconds, "measured", None)
    clock = mhz or board.mhz
    per_instruction = board.cost.cycles_per_instruction.value / (clock * 1e6 * seconds)
    return Load(
        work.front_end_instructions * per_instruction,
        work.network_instructions * per_instruction,
        "modelled",
        clock,
    )
