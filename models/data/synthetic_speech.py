"""Words spoken by a synthesizer: the data set that needs no download.

Each speaker is one voice of the synthesizer and belongs to one part only. What is learned from
these voices does not carry over to people; results on them say nothing about real speech.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from entrain.deploy.errors import DataError
from entrain.models.data.cache import cached_array, digest
from entrain.models.data.clips import CLIP_SAMPLES, SAMPLE_RATE, Clips, KeywordData, Samples
from entrain.models.data.espeak import Utterance, espeak_version, speak

WORDS = ("down", "eight", "five", "go", "left", "one", "right", "up", "zero")
SOURCE = "synthetic"
ACCENTS = (
    "en-us",
    "en",
    "en-gb-scotland",
    "en-gb-x-rp",
    "en-gb-x-gbclan",
    "en-gb-x-gbcwmd",
    "en-us-nyc",
    "en-029",
)
# Voices that sound like people and unlike each other. Those with breath draw it from a generator
# that cannot be seeded, and are left out.
_VOICE_NAMES = """
    Alex Andrea Andy Annie AnxiousAndy Denis Diogo Gene Henrique Hugo Jacky Lee Marco Mario
    Michael Mike Nguyen RicishayMax Tweaky adam anika announcer antonio aunty belinda benjamin
    boris david ed edward f1 f4 grandma grandpa gustave ian iven john kaukovalta klatt2 linda
    m1 m2 m3 m4 m5 m6 m7 m8 marcelo max michel miguel norbert pablo paul pedro quincy rob robert
    shelby steph travis zac
"""
VOICES = tuple(_VOICE_NAMES.split())
# The first of the shuffled voices train, the next validate, the last test.
TRAINING_VOICES = 44
VALIDATION_VOICES = 8

RATES = (120, 220)
PITCHES = (30, 71)
PITCH_RANGES = (30, 81)
# Loudness of the loudest sample, and of the noise beneath, both in powers of ten.
PEAK = (-1.0, -0.1)
NOISE = (-2.5, -1.3)
# How far the middle of a word may lie from the middle of its clip, in seconds.
JITTER = 0.1
_BACKGROUND_SECONDS = 20
# Changes when the same seed gives other clips, so that old caches are not taken for new ones.
_EDITION = 1


@dataclass(frozen=True)
class PartSizes:
    """How many clips each part has.

    Raises:
        DataError: if a part would be empty.
    """

    train: int = 2400
    validation: int = 300
    test: int = 450

    def __post_init__(self) -> None:
        if min(self.train, self.validation, self.test) < 1:
            raise DataError(f"every part needs at least one clip: {self}")


def synthetic_speech(
    words: Sequence[str] = WORDS, sizes: PartSizes | None = None, seed: int = 0
) -> KeywordData:
    """Make spoken words, on all processors, or read them from the user's cache.

    Args:
        words: two or more different words; each is said about equally often.
        sizes: clips of each part.
        seed: of who says what and how; the same seed gives the same clips, to the bit.

    Raises:
        DataError: for fewer than two different words.
        ToolError: if the synthesizer is not installed or fails.
    """
    labels = tuple(words)
    if len(labels) < 2 or len(set(labels)) != len(labels) or not all(map(str.strip, labels)):
        raise DataError(f"two or more different words are needed, not: {', '.join(labels)}")
    wanted = sizes or PartSizes()
    voices = np.random.default_rng((seed, 0)).permutation(np.array(VOICES)).tolist()
    split = TRAINING_VOICES + VALIDATION_VOICES
    background = tuple(_noises(np.random.default_rng((seed, 1))))
    plans = (
        _plan(labels, voices[:TRAINING_VOICES], wanted.train, (seed, 2)),
        _plan(labels, voices[TRAINING_VOICES:split], wanted.validation, (seed, 3)),
        _plan(labels, voices[split:], wanted.test, (seed, 4)),
    )
    samples = _samples([utterance for plan in plans for utterance in plan], background, seed)
    ends = np.cumsum([len(plan) for plan in plans])[:-1]
    train, validation, test = (
        _clips(plan, labels, part)
        for plan, part in zip(plans, np.split(samples, ends), strict=True)
    )
    return KeywordData(labels, train, validation, test, background, SOURCE)


def _plan(
    labels: Sequence[str], voices: Sequence[str], count: int, seed: tuple[int, int]
) -> list[Utterance]:
    """Who says which word in what manner: words and voices take turns, the rest is drawn."""
    random = np.random.default_rng(seed)
    return [
        Utterance(
            word=labels[turn % len(labels)],
            variant=voices[(turn // len(labels)) % len(voices)],
            accent=ACCENTS[int(random.integers(len(ACCENTS)))],
            rate=int(random.integers(*RATES)),
            pitch=int(random.integers(*PITCHES)),
            pitch_range=int(random.integers(*PITCH_RANGES)),
        )
        for turn in range(count)
    ]


def _clips(plan: Sequence[Utterance], labels: Sequence[str], samples: Samples) -> Clips:
    targets = np.array([labels.index(utterance.word) for utterance in plan], dtype=np.int64)
    names = tuple(
        f"{utterance.word}/{utterance.variant}_{utterance.accent}_{number}"
        for number, utterance in enumerate(plan)
    )
    return Clips(samples, targets, tuple(utterance.variant for utterance in plan), names)


def _samples(plan: Sequence[Utterance], background: Sequence[Samples], seed: int) -> Samples:
    """The clips of a plan, int16 [N, 16000], from the cache or made."""

    def make() -> Samples:
        words = _speak_all(plan)
        random = np.random.default_rng((seed, 5))
        clips = [_laid_out(word, background, random) for word in words]
        return np.stack(clips)

    key = digest(_EDITION, espeak_version(), seed, *plan)
    return cached_array("synthetic-speech", key, make)


def _speak_all(plan: Sequence[Utterance]) -> list[Samples]:
    """Every word of the plan, spoken voice by voice on all processors."""
    by_voice: dict[str, list[int]] = {}
    for number, utterance in enumerate(plan):
        by_voice.setdefault(utterance.variant, []).append(number)
    groups = [tuple(plan[number] for number in numbers) for numbers in by_voice.values()]
    spoken = Parallel(n_jobs=-1)(delayed(speak)(group) for group in groups)
    words: dict[int, Samples] = {}
    for numbers, group in zip(by_voice.values(), spoken, strict=True):
        words.update(zip(numbers, group, strict=True))
    return [words[number] for number in range(len(plan))]


def _laid_out(word: Samples, background: Sequence[Samples], random: np.random.Generator) -> Samples:
    """A word at a random loudness near the middle of a clip, over a little noise."""
    sound = _trimmed(word.astype(np.float64))[:CLIP_SAMPLES]
    peak = np.iinfo(np.int16).max * 10.0 ** random.uniform(*PEAK)
    sound *= peak / np.abs(sound).max()
    spare = CLIP_SAMPLES - len(sound)
    jitter = round(random.uniform(-JITTER, JITTER) * SAMPLE_RATE)
    start = min(max(spare // 2 + jitter, 0), spare)
    noise = background[int(random.integers(len(background)))]
    cut = int(random.integers(len(noise) - CLIP_SAMPLES + 1))
    clip = noise[cut : cut + CLIP_SAMPLES] * (
        peak * 10.0 ** random.uniform(*NOISE) / np.iinfo(np.int16).max
    )
    clip[start : start + len(sound)] += sound
    laid_out: Samples = np.rint(clip.clip(-32768, 32767)).astype(np.int16)
    return laid_out


def _trimmed(sound: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sound without what is quieter than a hundredth of its peak before and after."""
    loud = np.flatnonzero(np.abs(sound) > 0.01 * np.abs(sound).max())
    return sound[loud[0] : loud[-1] + 1]


def _noises(random: np.random.Generator) -> list[Samples]:
    """White, pink and brown noise, each filling the range of int16."""
    count = _BACKGROUND_SECONDS * SAMPLE_RATE
    spectrum = np.fft.rfft(random.standard_normal(count))
    # Brown noise below 20 Hz would only be an offset that wanders.
    hertz = np.maximum(np.fft.rfftfreq(count, 1 / SAMPLE_RATE), 20.0)
    noises = [np.fft.irfft(spectrum / hertz**slope, count) for slope in (0.0, 0.5, 1.0)]
    largest = np.iinfo(np.int16).max
    return [np.rint(noise * (largest / np.abs(noise).max())).astype(np.int16) for noise in noises]
