"""What was heard beside what was said."""

from __future__ import annotations

import pytest

from entrain.deploy.listening.hops import Heard
from entrain.deploy.listening.scoring import score
from entrain.deploy.statistics import poisson_interval
from entrain.models.data.long_recordings import Said

SECOND = 16_000


def said(word, start, end):
    return Said(word, "a clip", int(start * SECOND), int(end * SECOND))


def heard(word, at):
    return Heard(word, 900_000, int(at * SECOND))


WORDS = (said(0, 1.0, 1.5), said(None, 4.0, 4.5), said(1, 8.0, 8.4))


def judged(*found):
    return score(WORDS, found, 1.0)


def test_a_word_is_hit_from_its_start_to_a_second_after_its_end():
    for at, misses in ((0.99, 2), (1.0, 1), (2.5, 1), (2.51, 2)):
        assert judged(heard(0, at)).misses.count == misses


def test_what_is_heard_a_second_time_counts_as_false():
    found = judged(heard(0, 1.2), heard(0, 2.0))
    assert (found.misses.count, found.false_accepts.count, found.again) == (1, 1, 1)


def test_another_keyword_in_its_place_is_a_miss_and_a_false_accept():
    found = judged(heard(1, 1.2))
    assert (found.misses.count, found.false_accepts.count) == (2, 1)


def test_an_unknown_word_that_is_taken_for_a_keyword_counts_once_however_often():
    found = judged(heard(0, 4.2), heard(1, 4.9))
    assert (found.accepted.count, found.accepted.n) == (1, 1)
    assert found.false_accepts.count == 2


def test_delays_are_from_the_end_and_from_the_start():
    found = judged(heard(0, 1.9), heard(1, 8.3))
    assert found.delays == pytest.approx((0.4, -0.1))
    assert found.from_start == pytest.approx((0.9, 0.3))
    assert found.median_delay == pytest.approx(0.15)


def test_nothing_said_and_nothing_heard():
    found = score((), (), 10.0)
    assert (found.misses.n, found.accepted.n, found.false_accepts.count) == (0, 0, 0)
    assert found.median_delay is None
    assert found.false_accepts.interval == pytest.approx((0.0, 0.3689), abs=1e-4)


# Of a published table of exact limits (Pearson and Hartley, Biometrika Tables, 95 %).
@pytest.mark.parametrize(
    ("count", "low", "high"), [(0, 0.0, 3.689), (1, 0.0253, 5.572), (10, 4.795, 18.390)]
)
def test_the_exact_interval_of_a_count(count, low, high):
    assert poisson_interval(count, 1.0) == pytest.approx((low, high), abs=5e-4)
    assert poisson_interval(count, 4.0) == pytest.approx((low / 4, high / 4), abs=5e-4)


@pytest.mark.parametrize(("count", "exposure"), [(-1, 1.0), (1, 0.0)])
def test_a_rate_of_nothing_makes_no_sense(count, exposure):
    with pytest.raises(ValueError, match="events in"):
        poisson_interval(count, exposure)
