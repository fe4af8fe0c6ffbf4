"""A source is heard: events one after the other, and all of it at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from entrain.deploy.boards import Board
from entrain.deploy.listening.board import BoardSpotter
from entrain.deploy.listening.hops import Hops, joined
from entrain.deploy.listening.load import Load, load_of
from entrain.deploy.listening.settings import SCORE_ONE, SpotterSettings
from entrain.deploy.listening.streams import Listener
from entrain.models.data.clips import SAMPLE_RATE, Samples

AFTERWARDS = SAMPLE_RATE  # samples of silence behind a file, so that its last word is heard


@dataclass(frozen=True)
class Event:
    """A word that was heard.

    Args:
        word: which.
        seconds: when, from the start of the sound.
        confidence: its smoothed score, in [0, 1].
        latency_ms: from handing over the hop's sound to the answer.
        load: the device's, so far; None on this machine.
    """

    word: str
    seconds: float
    confidence: float
    latency_ms: float
    load: Load | None


class Session:
    """Hears one source.

    Args:
        listener: what hears.
        settings: its own.
        classes: of its network.
        board: the board that is emulated; None for a real one or for this machine.
    """

    def __init__(
        self, listener: Listener, settings: SpotterSettings, classes: int, board: Board | None
    ) -> None:
        self._listener, self._settings, self._board = listener, settings, board
        self._classes = classes
        self._parts: list[Hops] = []
        self._kept: list[Samples] = []
        listener.start()

    @property
    def load(self) -> Load | None:
        """The device's load so far; None on this machine."""
        if not isinstance(self._listener, BoardSpotter):
            return None
        return load_of(self._listener.work, self._settings, self._board)

    @property
    def hops(self) -> Hops:
        """All hops so far."""
        return joined(self._parts, self._classes)

    @property
    def samples(self) -> Samples:
        """All that was heard so far, int16 [N]; only what `keep` was asked for."""
        return np.concatenate([np.zeros(0, np.int16), *self._kept])

    def hear(self, blocks: Iterator[Samples], *, keep: bool) -> Iterator[Event]:
        """Hear sound, and tell of each word at once.

        Args:
            blocks: of samples.
            keep: whether `samples` are wanted; memory then grows with the sound.
        """
        size = self._settings.hop_samples
        waiting: Samples = np.zeros(0, np.int16)
        for block in blocks:
            if keep:
                self._kept.append(block)
            waiting = np.concatenate([waiting, block])
            while len(waiting) >= size:
                hop, waiting = waiting[:size], waiting[size:]
                yield from self._events(hop, keep=keep)

    def _events(self, hop: Samples, *, keep: bool) -> Iterator[Event]:
        began = time.perf_counter()
        found = self._listener.hear(hop)
        latency = 1000 * (time.perf_counter() - began)
        if keep:
            self._parts.append(found)
        for heard in found.heard:
            yield Event(
                self._settings.words[heard.word],
                heard.seconds,
                heard.score / SCORE_ONE,
                latency,
                self.load,
            )


def followed_by_silence(blocks: Iterator[Samples]) -> Iterator[Samples]:
    """A sound, and a second of nothing."""
    yield from blocks
    yield np.zeros(AFTERWARDS, np.int16)


def first(blocks: Iterator[Samples], seconds: float | None) -> Iterator[Samples]:
    """The first seconds of a sound; all of it for None."""
    left = None if seconds is None else round(seconds * SAMPLE_RATE)
    for block in blocks:
        if left is None:
            yield block
            continue
        yield block[:left]
        left -= len(block)
        if left <= 0:
            return
