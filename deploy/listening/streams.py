"""Long recordings of a run's data, and what a spotter makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from entrain.deploy.listening.hops import Hops, joined
from entrain.models.data.clips import SAMPLE_RATE, Samples
from entrain.models.data.long_recordings import LongRecording
from entrain.models.data.stream_words import Hearing

BLOCK_SAMPLES = 60 * SAMPLE_RATE  # that are heard at a time
NOISE_HOURS = 2.0  # of noise alone, for each hour with words


class Listener(Protocol):
    """What hears: the spotter on this machine, or on a device."""

    def start(self) -> None:
        """Forget everything."""

    def hear(self, samples: Samples) -> Hops:
        """Hear the next samples."""


@dataclass(frozen=True)
class Conditions:
    """How long and how loud.

    Args:
        hours: of words in noise.
        snr_db: how far a word's spoken part stands above the noise.
        seed: of everything random.
    """

    hours: float
    snr_db: float
    seed: int


@dataclass(frozen=True, eq=False)
class Recordings:
    """What there is to hear.

    Args:
        words: words said into noise.
        noise: noise alone.
    """

    words: LongRecording
    noise: LongRecording


def recordings(hearing: Hearing, conditions: Conditions) -> Recordings:
    """Recordings of some clips and noise: hours with words, and twice as many of noise alone."""
    nothing = hearing.keywords.select([])
    seconds = conditions.hours * 3600
    return Recordings(
        LongRecording(
            seconds,
            hearing.keywords,
            hearing.others,
            hearing.noise,
            conditions.snr_db,
            conditions.seed,
        ),
        LongRecording(
            NOISE_HOURS * seconds,
            nothing,
            nothing,
            hearing.noise,
            conditions.snr_db,
            conditions.seed + 1,
        ),
    )


def hear_all(
    listener: Listener, recording: LongRecording, classes: int, step: Callable[[str], None]
) -> Hops:
    """All hops of a recording, from its start.

    Args:
        listener: what hears.
        recording: the sound.
        classes: of the network.
        step: called after each minute.
    """

    def minutes() -> Iterator[Hops]:
        for block in recording.blocks(BLOCK_SAMPLES):
            yield listener.hear(block)
            step("")

    listener.start()
    return joined(list(minutes()), classes)
