"""Words to be spotted in a stream: keywords, other words and noise, to learn, to tune, to test.

What is tuned with and what is tested on have no speaker, no noise recording and no word that is not
to be spotted in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.errors import DataError
from entrain.models.data.clips import CLIP_SAMPLES, Clips, KeywordData, Samples, concatenate
from entrain.models.data.noises import babble, coloured_noises
from entrain.models.data.speech import (
    BACKGROUND,
    SILENCE,
    UNKNOWN,
    load_background,
    load_speech_commands,
    load_test_only,
)
from entrain.models.data.spoken_words import WORDS
from entrain.models.data.synthetic_speech import PartSizes, synthetic_speech
from entrain.models.scrambling import scramble

KEYWORDS = ("down", "go", "left", "right", "up")
# Said by synthetic voices in the test alone.
TEST_WORDS = ("bed", "cat", "dog", "four", "happy", "house", "nine", "six", "tree", "wow")

_SEED = 59_185_302
_SCRAMBLED = 0.4  # of the validation clips, for tuning
_COLOURED, _BABBLES = 24, 12  # noises that are made, ten seconds each
_SPOKEN_KEYWORDS, _SPOKEN_OTHERS = 600, 2400  # clips of synthetic voices
_LEARNED = 0.8  # of a noise recording; tuning hears the rest
_QUIETEST, _LOUDEST = -4.0, 0.0  # of a silent clip, full scale being 1, in powers of ten


@dataclass(frozen=True, eq=False)
class Hearing:
    """What a long recording is made of.

    Args:
        keywords: clips to be spotted; their targets are indices of the labels.
        others: clips of other words.
        noise: recordings.
    """

    keywords: Clips
    others: Clips
    noise: tuple[Samples, ...]


@dataclass(frozen=True, eq=False)
class StreamWords:
    """Data for a spotter.

    Args:
        clips: its labels are the keywords and then the classes unknown and silence.
        tuning: what thresholds are chosen by: speakers of the validation part, and clips made of
            pieces of their words among those of other words.
        test: other speakers, other unknown words, other noise.
    """

    clips: KeywordData
    tuning: Hearing
    test: Hearing


def load_stream_words(folder: Path, keywords: Sequence[str] = KEYWORDS) -> StreamWords:
    """Read a folder in the layout of Speech Commands.

    Words with clips in every part that are no keywords are learned as unknown; words with test
    clips alone are the test's. Every second noise recording, by name, is the test's. For learning
    alone, synthetic voices say the keywords and many other words, and noises are made.

    Raises:
        DataError: a keyword, another word, a test's word or noise is missing; a file is unreadable.
    """
    words = load_speech_commands(folder)
    background = [noise for _, noise in load_background(folder)]
    if len(background) < 2:
        raise DataError(
            "two noise recordings are needed, one to learn from and one for the test",
            where=str(folder / BACKGROUND),
            remedy="add recordings of a second or more",
        )
    return _stream_words(words, load_test_only(folder), background, keywords)


def synthetic_stream_words(sizes: PartSizes | None = None) -> StreamWords:
    """The same of synthetic voices.

    Raises:
        ToolError: the synthesizer is not installed or fails.
    """
    words = synthetic_speech(sizes=sizes)
    others = synthetic_speech(TEST_WORDS, PartSizes(1, 1, len(words.test)))
    return _stream_words(words, others.test, words.background, KEYWORDS)


def _stream_words(
    words: KeywordData, unheard: Clips, noise: Sequence[Samples], keywords: Sequence[str]
) -> StreamWords:
    """From words with clips in every part, clips of others for the test, and two recordings."""
    missing = [word for word in keywords if word not in words.labels]
    if missing or len(keywords) == len(words.labels):
        raise DataError(
            f"clips in every part are needed of {', '.join(keywords)}, and of other words",
            where=words.source,
            remedy=f"words with clips in every part: {', '.join(words.labels)}",
        )
    known = [part[: round(_LEARNED * len(part))] for part in noise[::2]]
    left = tuple(part[round(_LEARNED * len(part)) :] for part in noise[::2])
    train, validation, test = (
        _as_spotted(clips, words.labels, keywords)
        for clips in (words.train, words.validation, words.test)
    )
    random = np.random.default_rng((_SEED, 1))
    known += coloured_noises(_COLOURED, random) + babble(train.samples, _BABBLES, random)
    train = concatenate([train, _spoken(keywords)])
    silence = len(keywords) + 1
    clips = KeywordData(
        labels=(*keywords, UNKNOWN, SILENCE),
        train=_with_silence(train, known, "train", silence),
        validation=_with_silence(validation, left, "validation", silence),
        test=_with_silence(test, noise[1::2], "test", silence),
        background=tuple(known),
        source=words.source,
    )
    return StreamWords(
        clips,
        _hearing(validation, _no_words(validation), left),
        _hearing(test, unheard, tuple(noise[1::2])),
    )


def _as_spotted(clips: Clips, labels: Sequence[str], keywords: Sequence[str]) -> Clips:
    """The same clips, the keywords' targets first, and one target for all others."""
    targets = [keywords.index(label) if label in keywords else len(keywords) for label in labels]
    return replace(clips, targets=np.array(targets, np.int64)[clips.targets])


def _no_words(clips: Clips) -> Clips:
    """What thresholds have to keep out: other words, and as many clips made of words' pieces.

    The network has learned the other words; of those that it never heard the pieces tell more.
    """
    random = np.random.default_rng((_SEED, 0))
    mixed = scramble(clips.samples, clips.targets, _SCRAMBLED, random)
    names = tuple(f"scrambled/{name}" for name in clips.names)
    pieces = replace(clips, samples=mixed.samples, names=names)
    others = clips.select(np.flatnonzero(clips.targets == clips.targets.max()))
    return concatenate([others, pieces.select(np.flatnonzero(mixed.is_scrambled))])


def _hearing(clips: Clips, others: Clips, noise: tuple[Samples, ...]) -> Hearing:
    keywords = clips.select(np.flatnonzero(clips.targets < clips.targets.max()))
    return Hearing(keywords, others, noise)


def _spoken(keywords: Sequence[str]) -> Clips:
    """Synthetic voices that say the keywords, and many other words."""
    mine = synthetic_speech(keywords, PartSizes(_SPOKEN_KEYWORDS, 1, 1)).train
    others = synthetic_speech(
        tuple(word for word in WORDS if word not in keywords), PartSizes(_SPOKEN_OTHERS, 1, 1)
    ).train
    unknown = np.full(len(others), len(keywords), np.int64)
    return concatenate([mine, replace(others, targets=unknown)])


def _with_silence(clips: Clips, noise: Sequence[Samples], part: str, target: int) -> Clips:
    """The clips, and of noise of any loudness down to nothing as many as a class has on average."""
    random = np.random.default_rng((_SEED, len(part)))
    count = max(1, len(clips) // target)
    samples = np.empty((count, CLIP_SAMPLES), np.int16)
    names = []
    for clip in samples:
        which = int(random.integers(len(noise)))
        start = int(random.integers(max(1, len(noise[which]) - CLIP_SAMPLES + 1)))
        gain = 10.0 ** random.uniform(_QUIETEST, _LOUDEST)
        clip[:] = np.rint(gain * _second(noise[which], start))
        names.append(f"{BACKGROUND}/{part}-{which}+{start}")
    speakers = tuple(name.partition("+")[0] for name in names)
    silence = Clips(samples, np.full(count, target, np.int64), speakers, tuple(names))
    return concatenate([clips, silence])


def _second(noise: Samples, start: int) -> NDArray[np.int16]:
    return np.take(noise, np.arange(start, start + CLIP_SAMPLES), mode="wrap")
