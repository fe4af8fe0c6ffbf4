"""What was heard beside what was said: misses, false accepts, delays."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from entrain.deploy.listening.hops import Heard
from entrain.deploy.statistics import Interval, poisson_interval, wilson_interval
from entrain.models.data.clips import SAMPLE_RATE
from entrain.models.data.long_recordings import Said

GRACE = SAMPLE_RATE  # samples after a word's end in which it still counts


@dataclass(frozen=True)
class Rate:
    """A share of a number, with Wilson's 95 % interval.

    Args:
        count: how many.
        n: of how many.
        interval: of the share.
    """

    count: int
    n: int
    interval: Interval

    @property
    def share(self) -> float:
        """In [0, 1]; 0 of none."""
        return self.count / self.n if self.n else 0.0


@dataclass(frozen=True)
class Frequency:
    """How often in so many hours, with the exact 95 % interval of a Poisson process.

    Args:
        count: how often.
        hours: of sound.
        interval: times an hour.
    """

    count: int
    hours: float
    interval: Interval

    @property
    def an_hour(self) -> float:
        """Times an hour."""
        return self.count / self.hours


@dataclass(frozen=True)
class Score:
    """A stream's score.

    Args:
        misses: keywords that were not heard.
        accepted: other words that were taken for a keyword.
        false_accepts: all that was heard beside the hits.
        again: keywords that were heard more than once.
        delays: seconds from the end of each word that was heard until then.
        from_start: the same from its start.
    """

    misses: Rate
    accepted: Rate
    false_accepts: Frequency
    again: int
    delays: tuple[float, ...]
    from_start: tuple[float, ...]

    @property
    def median_delay(self) -> float | None:
        """Of the words that were heard, from their end; None of none."""
        return float(np.median(self.delays)) if self.delays else None

    @property
    def median_from_start(self) -> float | None:
        """Of the words that were heard, from their start; None of none."""
        return float(np.median(self.from_start)) if self.from_start else None


def score(said: Sequence[Said], heard: Sequence[Heard], hours: float) -> Score:
    """Judge a stream.

    A hit is the first time that a keyword is heard from its start to one second after its end.

    Args:
        said: what there was to hear, in order; no word begins within a second of the last one's
            end.
        heard: what was heard.
        hours: how long the stream was.
    """
    starts = [word.start for word in said]
    within: list[list[Heard]] = [[] for _ in said]
    for each in heard:
        place = bisect.bisect_right(starts, each.at) - 1
        if place >= 0 and each.at <= said[place].end + GRACE:
            within[place].append(each)
    hits: list[tuple[Said, Heard]] = []
    again = accepted = 0
    for word, found in zip(said, within, strict=True):
        if word.word is None:
            accepted += bool(found)
            continue
        right = [each for each in found if each.word == word.word]
        hits += [(word, right[0])] if right else []
        again += len(right) > 1
    keywords = sum(word.word is not None for word in said)
    others = len(said) - keywords
    false = len(heard) - len(hits)
    return Score(
        misses=_rate(keywords - len(hits), keywords),
        accepted=_rate(accepted, others),
        false_accepts=Frequency(false, hours, poisson_interval(false, hours)),
        again=again,
        delays=tuple((found.at - word.end) / SAMPLE_RATE for word, found in hits),
        from_start=tuple((found.at - word.start) / SAMPLE_RATE for word, found in hits),
    )


def _rate(count: int, n: int) -> Rate:
    return Rate(count, n, wilson_interval(count, n) if n else (0.0, 1.0))
