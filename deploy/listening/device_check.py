"""The first minutes of a recording on a device, beside this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from entrain.deploy.boards import Board, find_board
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress, parse_address
from entrain.deploy.device.client import Client
from entrain.deploy.errors import concerning
from entrain.deploy.listening.board import CODERS, BoardSpotter, Work
from entrain.deploy.listening.firmware import Spotter
from entrain.models.data.clips import SAMPLE_RATE, Samples
from entrain.models.data.long_recordings import LongRecording

if TYPE_CHECKING:
    from entrain.deploy.pipeline import Progress


@dataclass(frozen=True)
class Checked:
    """What came of it.

    Args:
        hops: that the device heard.
        differing: of those, how many have another score or word than this machine's.
        work: what they took.
        board: that was emulated; None for a real one.
    """

    hops: int
    differing: int
    work: Work
    board: Board | None


def connected(spotter: Spotter, device: str, progress: Progress) -> Client:
    """The device; an emulator is started with a build of the spotter's run.

    Raises:
        UsageError: no device is addressed so.
        DeviceError: it is missing, busy or lost.
        ToolError: a program is not installed.
    """
    from entrain.deploy import pipeline

    address, board = parse_address(device), emulated_board(device)
    if board is None:
        return connect(address)
    return connect(address, pipeline.build(spotter.run, board, progress).image)


def emulated_board(device: str) -> Board | None:
    """The board that is emulated there; None for a real one.

    Raises:
        UsageError: no device is addressed so.
        BoardError: there is no such board.
    """
    address = parse_address(device)
    return find_board(address.board) if isinstance(address, QemuAddress) else None


def compare_with_device(
    spotter: Spotter,
    device: str,
    recording: LongRecording,
    minutes: float,
    coding: str,
    progress: Progress,
) -> Checked:
    """Let the device hear the first minutes of a recording, and this machine what it heard.

    Raises:
        UsageError, DeviceError, ToolError: as `connected`.
        ProtocolError: the device did not hear what it was sent.
    """
    host = spotter.on_host()
    with concerning(device), connected(spotter, device, progress) as client:
        board = BoardSpotter(client, spotter.settings, len(spotter.labels), CODERS[coding])
        differing = 0
        seconds = round(minutes * 60)
        with progress.stage(spotter.run, f"hear {minutes:g} min on {device}", seconds) as step:
            for block in _first(recording, seconds):
                found = board.hear(block)
                expected = host.hear(board.arrived)
                same = (found.scores == expected.scores).all(axis=1)
                differing += int((~same).sum()) + (found.heard != expected.heard)
                step("")
        return Checked(board.work.hops, differing, board.work, emulated_board(device))


def _first(recording: LongRecording, seconds: int) -> Iterator[Samples]:
    """So many whole seconds of a recording, or all of it."""
    for _, block in zip(range(seconds), recording.blocks(SAMPLE_RATE), strict=False):
        yield np.asarray(block, np.int16)
