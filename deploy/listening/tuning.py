"""Thresholds and refractory times from recordings of the tuning data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from entrain.deploy.listening.decide import decide
from entrain.deploy.listening.hops import Hops
from entrain.deploy.listening.scoring import Score, score
from entrain.deploy.listening.settings import SCORE_ONE, SpotterSettings
from entrain.models.data.long_recordings import Said

LOWEST, HIGHEST, STEP = 0.30, 0.98, 0.01
SHORTEST_REFRACTORY, LONGEST_REFRACTORY = 0.7, 2.0  # seconds


@dataclass(frozen=True)
class Goals:
    """What thresholds are to keep to, on the tuning data.

    Args:
        false_accepts_an_hour: of noise alone, all words together, counted.
        accepted: the share of other words that are taken for a keyword, all words together.
        again: the share of a word's hits that may be heard twice.
    """

    false_accepts_an_hour: float = 0.1
    accepted: float = 0.04
    again: float = 0.002


@dataclass(frozen=True, eq=False)
class Stream:
    """A stream and what is known of it.

    Args:
        said: the words in it.
        hops: what the network made of it.
        hours: how long it is.
    """

    said: Sequence[Said]
    hops: Hops
    hours: float


@dataclass(frozen=True)
class Tuned:
    """What was chosen, and what it comes to on the data that it was chosen by.

    Args:
        settings: the spotter's.
        words: the stream with words.
        noise: the stream without.
    """

    settings: SpotterSettings
    words: Score
    noise: Score


def tune(
    settings: SpotterSettings,
    words: Stream,
    noise: Stream,
    goals: Goals = Goals(),
) -> Tuned:
    """Choose the lowest threshold of each word that keeps to the goals, then its refractory time.

    Every word has an equal share of the false accepts: thresholds are chosen word by word, as if no
    other could be heard.

    Args:
        settings: what is kept: hop, smoothing, gate, and the words.
        words: words in noise.
        noise: noise alone.
        goals: what to keep to.
    """
    count = len(settings.words)
    thresholds = {
        word: _threshold(place, settings, words, noise, goals, count)
        for place, word in enumerate(settings.words)
    }
    chosen = settings.model_copy(update={"thresholds": thresholds})
    refractory = {
        word: _refractory(place, chosen, words, goals) for place, word in enumerate(settings.words)
    }
    chosen = chosen.model_copy(update={"refractory_seconds": refractory})
    return Tuned(chosen, judged(chosen, words), judged(chosen, noise))


def judged(settings: SpotterSettings, stream: Stream) -> Score:
    """What settings come to on a stream."""
    heard = decide(
        stream.hops,
        settings.smoothed_hops,
        settings.threshold_millionths,
        settings.refractory_hops,
    )
    return score(stream.said, heard, stream.hours)


def at_one_threshold(settings: SpotterSettings, threshold: float) -> SpotterSettings:
    """The same settings with one threshold for all words."""
    return settings.model_copy(update={"thresholds": dict.fromkeys(settings.words, threshold)})


def thresholds() -> list[float]:
    """Those that are tried, in rising order."""
    return [round(each, 2) for each in np.arange(LOWEST, HIGHEST + STEP / 2, STEP).tolist()]


def _threshold(
    place: int, settings: SpotterSettings, words: Stream, noise: Stream, goals: Goals, count: int
) -> float:
    others = [word for word in words.said if word.word is None]
    most_false = goals.false_accepts_an_hour * noise.hours / count
    most_accepted = goals.accepted * len(others) / count
    for threshold in thresholds():
        alone = [2 * SCORE_ONE] * count  # what no score reaches
        alone[place] = round(SCORE_ONE * threshold)
        rule = (settings.smoothed_hops, alone, settings.refractory_hops)
        false = len(decide(noise.hops, *rule))
        if false > most_false:
            continue
        accepted = score(others, decide(words.hops, *rule), words.hours).accepted.count
        if accepted <= most_accepted:
            return threshold
    return HIGHEST


def _refractory(place: int, settings: SpotterSettings, words: Stream, goals: Goals) -> float:
    """The shortest time after which a word that was said once is hardly heard again."""
    mine = [word for word in words.said if word.word == place]
    shortest = math.ceil(SHORTEST_REFRACTORY / settings.hop_seconds)
    longest = math.floor(LONGEST_REFRACTORY / settings.hop_seconds)
    for hops in range(shortest, longest):
        refractory = [hops if each == place else 0 for each in range(len(settings.words))]
        heard = decide(
            words.hops, settings.smoothed_hops, settings.threshold_millionths, refractory
        )
        if score(mine, heard, words.hours).again <= goals.again * len(mine):
            return round(hops * settings.hop_seconds, 6)
    return round(longest * settings.hop_seconds, 6)
