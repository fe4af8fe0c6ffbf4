"""Misses and false accepts over the threshold."""

from __future__ import annotations

from dataclasses import dataclass

from entrain.deploy.listening.scoring import Score
from entrain.deploy.listening.settings import SpotterSettings
from entrain.deploy.listening.tuning import Stream, at_one_threshold, judged, thresholds


@dataclass(frozen=True, eq=False)
class Point:
    """What one threshold for all words comes to.

    Args:
        threshold: of the smoothed score.
        words: words in noise.
        noise: noise alone.
    """

    threshold: float
    words: Score
    noise: Score


def curve(settings: SpotterSettings, words: Stream, noise: Stream) -> list[Point]:
    """A point for each threshold, in rising order; everything else is as in the settings."""
    return [
        Point(threshold, judged(one, words), judged(one, noise))
        for threshold in thresholds()
        for one in [at_one_threshold(settings, threshold)]
    ]
