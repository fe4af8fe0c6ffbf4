"""Noise that is made: of any colour, steady or swelling; and many people talking at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from entrain.models.data.clips import SAMPLE_RATE, Samples, to_samples

SECONDS = 10
PEAK = 0.9  # of full scale
SLOPES = (-0.5, 1.5)  # power of frequency by which the amplitude falls
BUMPS = 6  # places of the spectrum between which its loudness wanders
BUMP_DB = 12.0
SWELL_HERTZ = (0.2, 8.0)
TALKERS = (3, 8)


def coloured_noises(count: int, random: np.random.Generator) -> list[Samples]:
    """Noises of ten seconds: each has a colour of its own, every second one swells."""
    return [_coloured(random, swells=bool(index % 2)) for index in range(count)]


def babble(clips: Samples, count: int, random: np.random.Generator) -> list[Samples]:
    """Ten seconds each of several talkers at once, saying the words of clips [N, 16000]."""
    return [_babble(clips, random) for _ in range(count)]


def _coloured(random: np.random.Generator, *, swells: bool) -> Samples:
    length = SECONDS * SAMPLE_RATE
    hertz = np.maximum(np.fft.rfftfreq(length, 1 / SAMPLE_RATE), 40.0)
    places = np.geomspace(40.0, SAMPLE_RATE / 2, BUMPS)
    bumps = np.interp(np.log(hertz), np.log(places), random.uniform(-BUMP_DB, BUMP_DB, BUMPS))
    loudness = hertz ** -random.uniform(*SLOPES) * 10 ** (bumps / 20)
    sound = np.fft.irfft(np.fft.rfft(random.standard_normal(length)) * loudness, length)
    if swells:
        phase = 2 * np.pi * random.uniform(*SWELL_HERTZ) * np.arange(length) / SAMPLE_RATE
        sound *= 1 + random.uniform(0.3, 0.9) * np.sin(phase)
    return _loud(sound)


def _babble(clips: Samples, random: np.random.Generator) -> Samples:
    sound = np.zeros(SECONDS * SAMPLE_RATE)
    for _ in range(int(random.integers(*TALKERS, endpoint=True))):
        words = clips[random.integers(len(clips), size=SECONDS)].reshape(-1).astype(np.float64)
        words /= max(float(np.sqrt(np.mean(np.square(words)))), 1.0)
        sound += 10 ** random.uniform(-0.3, 0.0) * np.roll(words, int(random.integers(len(words))))
    return _loud(sound)


def _loud(sound: NDArray[np.float64]) -> Samples:
    return to_samples(sound * (PEAK / np.abs(sound).max()))
