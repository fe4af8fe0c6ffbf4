"""Thresholds that keep other words and noise out; refractory times as long as needed."""

from __future__ import annotations

import numpy as np
from hand_made_spotter import settings

from entrain.deploy.listening.curve import curve
from entrain.deploy.listening.hops import Hops
from entrain.deploy.listening.tuning import SHORTEST_REFRACTORY, Goals, Stream, thresholds, tune
from entrain.models.data.long_recordings import Said

HOP = 1_600
STRICT = Goals(false_accepts_an_hour=0.0, accepted=0.0, again=0.0)
CHOSEN = settings(smoothed_hops=1)


def stream(said, peaks, hops=600):
    """Scores of two words, 0 but for peaks: hop, word, score, for how many hops."""
    scores = np.zeros((hops, 4), np.uint32)
    for hop, word, score, length in peaks:
        scores[hop : hop + length, word] = round(1e6 * score)
    at = HOP * np.arange(1, hops + 1)
    made = Hops(at, scores, np.zeros(hops, np.bool_), ())
    return Stream(said, made, hops * HOP / 16_000 / 3600)


def word(place, hop, hops=5):
    return Said(place, "a clip", hop * HOP, (hop + hops) * HOP)


QUIET = stream((), [])


def test_a_threshold_is_just_above_what_noise_reaches():
    noise = stream((), [(100, 0, 0.62, 1), (200, 1, 0.41, 1)])
    tuned = tune(CHOSEN, stream((), []), noise, STRICT)
    assert tuned.settings.thresholds == {"low": 0.63, "high": 0.42}
    assert tuned.noise.false_accepts.count == 0


def test_and_above_what_other_words_reach():
    words = stream((word(None, 50), word(0, 100)), [(53, 0, 0.71, 1), (103, 0, 0.9, 1)])
    tuned = tune(CHOSEN, words, QUIET, STRICT)
    assert tuned.settings.thresholds["low"] == 0.72
    assert (tuned.words.accepted.count, tuned.words.misses.count) == (0, 0)


def test_goals_that_allow_some_lower_it():
    words = stream(
        tuple(word(None, 20 + 20 * n) for n in range(20)), [(22, 0, 0.9, 1), (42, 0, 0.5, 1)]
    )
    tuned = tune(CHOSEN, words, QUIET, Goals(0.0, accepted=0.1, again=0.0))
    assert tuned.settings.thresholds["low"] == 0.51


def test_where_nothing_keeps_it_out_the_threshold_is_the_highest():
    noise = stream((), [(100, 0, 1.0, 1)])
    assert tune(CHOSEN, QUIET, noise, STRICT).settings.thresholds["low"] == thresholds()[-1]


def test_a_refractory_time_is_as_long_as_a_word_is_heard_and_no_longer():
    words = stream((word(0, 100), word(1, 200)), [(102, 0, 0.9, 11), (203, 1, 0.9, 1)])
    refractory = tune(CHOSEN, words, QUIET, STRICT).settings.refractory_seconds
    assert refractory == {"low": 1.1, "high": SHORTEST_REFRACTORY}


def test_scores_that_smoothing_carries_on_are_waited_for_too():
    slow = settings(smoothed_hops=5)
    words = stream((word(0, 100),), [(102, 0, 0.9, 9)])
    tuned = tune(slow, words, QUIET, STRICT)
    assert tuned.words.again == 0
    assert tuned.settings.refractory_seconds["low"] > 0.9


def test_a_tuned_word_is_heard_once():
    words = stream((word(0, 100),), [(102, 0, 0.9, 11)])
    tuned = tune(CHOSEN, words, QUIET, STRICT)
    assert (tuned.words.again, tuned.words.misses.count) == (0, 0)


def test_a_curve_goes_from_all_to_nothing():
    words = stream((word(0, 100), word(None, 150)), [(102, 0, 0.9, 1), (152, 0, 0.6, 1)])
    points = curve(CHOSEN, words, QUIET)
    assert [point.threshold for point in points] == thresholds()
    assert (points[0].words.misses.count, points[0].words.accepted.count) == (0, 1)
    assert (points[-1].words.misses.count, points[-1].words.accepted.count) == (1, 0)
    misses = [point.words.misses.count for point in points]
    assert misses == sorted(misses)
