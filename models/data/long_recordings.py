"""Long recordings made of clips and background noise, by seed: what a board would hear for hours.

Noise goes on without a break, stretch after stretch of the given recordings. Words are said into
it, some seconds apart, each as loud that its spoken part stands the given ratio above the noise;
how loud both are together changes from stretch to stretch. What was said, and when, is known to the
sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.errors import UsageError
from entrain.models.data.clips import SAMPLE_RATE, Clips, Samples, to_samples
from entrain.models.data.spoken import spoken_part

SHORTEST_PAUSE, MEAN_PAUSE = 1.5, 4.0  # seconds between words
NOISE_LEVEL = 0.01  # root mean square of the noise, full scale being 1: -40 dB
LOUDNESS_DB = 6.0  # by up to so much a stretch is louder or softer, its words with it
STRETCH = (4.0, 12.0)  # seconds
FADE = 0.05  # seconds between stretches


@dataclass(frozen=True)
class Said:
    """A word of a recording.

    Attributes:
        word: the index of its label; None if it is none of the words to be spotted.
        name: of its clip.
        start: its first sample.
        end: behind its last one.
    """

    word: int | None
    name: str
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class _Spoken:
    """A word with its clip: where that begins, and by what it is multiplied."""

    said: Said
    clip: Samples
    begin: int
    gain: float


@dataclass(frozen=True, eq=False)
class LongRecording:
    """A recording that is made anew whenever it is heard.

    Attributes:
        seconds: how long it is.
        keywords: clips to be spotted, their targets the indices of the labels.
        others: clips that are not; both empty: noise alone.
        noise: recordings, each at least as long as the longest stretch, or repeated.
        snr_db: how far the spoken part of a word stands above the noise.
        seed: of everything random.
    """

    seconds: float
    keywords: Clips
    others: Clips
    noise: Sequence[Samples]
    snr_db: float
    seed: int

    def __post_init__(self) -> None:
        if not self.noise:
            raise UsageError("no noise to say words into", remedy="give one recording or more")

    @property
    def samples(self) -> int:
        """How many there are."""
        return round(self.seconds * SAMPLE_RATE)

    @cached_property
    def said(self) -> tuple[Said, ...]:
        """All words, in their order; keywords and others alternate at random, as often each."""
        return tuple(word.said for word in self._plan)

    def blocks(self, samples: int = SAMPLE_RATE) -> Iterator[Samples]:
        """Its sound, int16, so many samples at a time; the same sound whatever their number."""
        waiting: list[Samples] = []
        held = 0
        for stretch in self._stretches():
            waiting.append(stretch)
            held += len(stretch)
            if held >= samples:
                whole = np.concatenate(waiting)
                cut = held - held % samples
                yield from whole[:cut].reshape(-1, samples)
                waiting, held = [whole[cut:]], held - cut
        if held:
            yield np.concatenate(waiting)

    @cached_property
    def _plan(self) -> tuple[_Spoken, ...]:
        groups = [clips for clips in (self.keywords, self.others) if len(clips)]
        if not groups:
            return ()
        random = np.random.default_rng((self.seed, 0))
        plan: list[_Spoken] = []
        place = 0
        while True:
            pause = SHORTEST_PAUSE + random.exponential(MEAN_PAUSE - SHORTEST_PAUSE)
            clips = groups[int(random.integers(len(groups)))]
            index = int(random.integers(len(clips)))
            place += round(pause * SAMPLE_RATE)
            clip = clips.samples[index]
            if place + len(clip) > self.samples:
                return tuple(plan)
            word = int(clips.targets[index]) if clips is self.keywords else None
            plan.append(self._spoken(word, clips.names[index], clip, place))
            place += len(clip)

    def _spoken(self, word: int | None, name: str, clip: Samples, begin: int) -> _Spoken:
        first, behind = spoken_part(clip)
        loudness = _level(clip[first:behind].astype(np.float32))
        gain = NOISE_LEVEL * 10 ** (self.snr_db / 20) / max(loudness, 1e-9)
        return _Spoken(Said(word, name, begin + first, begin + behind), clip, begin, gain)

    def _stretches(self) -> Iterator[Samples]:
        """Noise with its words, a stretch at a time."""
        random = np.random.default_rng((self.seed, 1))
        fade = round(FADE * SAMPLE_RATE)
        rising = np.linspace(0, 1, fade, dtype=np.float32)
        tail = np.zeros(fade, np.float32)  # of the stretch before, fading
        loudness = 1.0
        words = list(self._plan)
        place = 0
        while place < self.samples:
            length = round(random.uniform(*STRETCH) * SAMPLE_RATE)
            noise = self._noise(random, length + fade)
            noise[:fade] = noise[:fade] * rising + tail
            tail = noise[length:] * rising[::-1]
            sound = noise[: min(length, self.samples - place)].copy()
            for word in words:
                _say(sound, place, word)
            words = [word for word in words if word.begin + len(word.clip) > place + length]
            before, loudness = loudness, 10 ** (random.uniform(-LOUDNESS_DB, LOUDNESS_DB) / 20)
            turned = before + (loudness - before) * rising[: len(sound)]
            sound[:fade] *= turned
            sound[fade:] *= np.float32(loudness)
            yield to_samples(sound)
            place += length

    def _noise(self, random: np.random.Generator, length: int) -> NDArray[np.float32]:
        noise = self.noise[int(random.integers(len(self.noise)))]
        start = int(random.integers(len(noise)))
        sound = np.take(noise, np.arange(start, start + length), mode="wrap").astype(np.float32)
        return np.asarray(sound * (NOISE_LEVEL / max(_level(sound), 1e-9)), np.float32)


def _say(sound: NDArray[np.float32], place: int, word: _Spoken) -> None:
    """Add what of a word's clip falls into the stretch that begins at ``place``."""
    start = word.begin - place
    here = slice(max(start, 0), min(start + len(word.clip), len(sound)))
    if here.start < here.stop:
        sound[here] += word.gain * word.clip[here.start - start : here.stop - start]


def _level(sound: NDArray[np.float32]) -> float:
    return float(np.sqrt(np.mean(np.square(sound, dtype=np.float64))))
