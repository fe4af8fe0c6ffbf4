"""Intervals and tests agree with scipy and closed forms, and keep what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from entrain.deploy.statistics import (
    accuracy_interval,
    balanced_accuracy,
    confusion_matrix,
    mcnemar,
    mean_over_seeds,
    paired_difference,
    wilson_interval,
)

shares = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1)
clips = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.sampled_from("abcdef")), min_size=1, max_size=60
)


def columns(rows: list[tuple[bool, bool, str]]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    one, other, speakers = zip(*rows, strict=True)
    return np.array(one), np.array(other), list(speakers)


def many(seed: int, n: int, share: float, per_speaker: int) -> tuple[np.ndarray, list[str]]:
    correct = np.random.default_rng(seed).random(n) < share
    return correct, [f"speaker{index // per_speaker}" for index in range(n)]


@given(shares, st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_scipys(share: tuple[int, int], confidence: float) -> None:
    successes, n = share
    reference = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    assert wilson_interval(successes, n, confidence) == pytest.approx(tuple(reference), abs=1e-12)


@given(shares)
def test_wilson_holds_the_proportion_and_stays_within_0_and_1(share: tuple[int, int]) -> None:
    low, high = wilson_interval(*share)
    assert 0 <= low <= share[0] / share[1] <= high <= 1


@pytest.mark.parametrize("share", [(0, 0), (3, 2), (-1, 2)])
def test_an_impossible_share_is_refused(share: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson_interval(*share)


def test_with_one_clip_a_speaker_the_bootstrap_is_the_binomial_interval() -> None:
    correct, speakers = many(seed=1, n=900, share=0.9, per_speaker=1)
    low, high = accuracy_interval(correct, speakers)
    spread = 1.96 * math.sqrt(correct.mean() * (1 - correct.mean()) / 900)
    assert low == pytest.approx(correct.mean() - spread, abs=0.002)
    assert high == pytest.approx(correct.mean() + spread, abs=0.002)


def test_clips_that_hang_together_widen_the_interval() -> None:
    correct, _ = many(seed=1, n=90, share=0.8, per_speaker=1)
    together = np.repeat(correct, 10)
    by_speaker = [f"speaker{index // 10}" for index in range(900)]
    low, high = accuracy_interval(together, by_speaker)
    alone_low, alone_high = accuracy_interval(together, [str(index) for index in range(900)])
    assert (high - low) / (alone_high - alone_low) == pytest.approx(math.sqrt(10), rel=0.15)


@given(clips)
@settings(max_examples=30, deadline=None)
def test_the_interval_holds_the_accuracy_and_is_the_same_again(
    rows: list[tuple[bool, bool, str]],
) -> None:
    correct, _, speakers = columns(rows)
    low, high = accuracy_interval(correct, speakers)
    assert 0 <= low <= correct.mean() <= high <= 1
    assert accuracy_interval(correct, speakers) == (low, high)


@pytest.mark.parametrize("correct", [[True] * 20, [False] * 20, [True, False] * 10])
def test_where_resampling_says_nothing_it_is_wilsons(correct: list[bool]) -> None:
    speakers = ["one"] * 20 if len(set(correct)) > 1 else ["one", "two"] * 10
    assert accuracy_interval(np.array(correct), speakers) == wilson_interval(sum(correct), 20)


def test_clips_without_speakers_are_refused() -> None:
    with pytest.raises(ValueError, match="groups"):
        accuracy_interval(np.array([True]), [])


@given(labels)
def test_the_confusion_matrix_counts_every_clip_once(pairs: list[tuple[int, int]]) -> None:
    truth, predicted = np.array(pairs).T
    confusion = confusion_matrix(truth, predicted, 5)
    for true, guess in np.ndindex(5, 5):
        assert confusion[true, guess] == pairs.count((true, guess))


def test_a_class_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"outside 0\.\.2"):
        confusion_matrix(np.array([0, 3]), np.array([0, 0]), 3)


@given(labels)
def test_balanced_accuracy_is_the_mean_recall_of_the_classes_there_are(
    pairs: list[tuple[int, int]],
) -> None:
    truth, predicted = np.array(pairs).T
    recalls = [(predicted[truth == true] == true).mean() for true in np.unique(truth)]
    confusion = confusion_matrix(truth, predicted, 5)
    assert balanced_accuracy(confusion) == pytest.approx(np.mean(recalls))


@pytest.mark.parametrize(("better", "worse", "p"), [(0, 0, 1.0), (5, 0, 2 / 32), (3, 3, 1.0)])
def test_mcnemar_is_the_exact_sign_test(better: int, worse: int, p: float) -> None:
    correct = np.array([True] * better + [False] * worse + [True] * 10)
    baseline = np.array([False] * better + [True] * worse + [True] * 10)
    assert mcnemar(correct, baseline) == pytest.approx(p)


@pytest.mark.parametrize("shift", [0.0, 0.02, 0.05])
def test_with_one_clip_a_speaker_the_permutation_test_is_mcnemars(shift: float) -> None:
    random = np.random.default_rng(3)
    correct = random.random(600) < 0.9 + shift
    baseline = random.random(600) < 0.9
    found = paired_difference(correct, baseline, [str(index) for index in range(600)])
    assert found.p_value == pytest.approx(mcnemar(correct, baseline), abs=0.02)
    assert found.difference == pytest.approx(correct.mean() - baseline.mean())
    spread = 1.96 * np.std(correct.astype(int) - baseline) / math.sqrt(600)
    assert found.interval[0] == pytest.approx(found.difference - spread, abs=0.003)
    assert found.interval[1] == pytest.approx(found.difference + spread, abs=0.003)


def test_a_gain_of_few_speakers_is_weaker_evidence_than_of_many() -> None:
    baseline = np.zeros(400, dtype=bool)
    correct = np.arange(400) < 40
    few = paired_difference(correct, baseline, [str(index // 40) for index in range(400)])
    many_speakers = paired_difference(correct, baseline, [str(index) for index in range(400)])
    assert few.p_value > 0.9  # one speaker changed sides: either way as likely
    assert many_speakers.p_value < 0.001


@given(clips)
@settings(max_examples=30, deadline=None)
def test_swapping_the_two_turns_the_sign_and_keeps_the_p(
    rows: list[tuple[bool, bool, str]],
) -> None:
    one, other, speakers = columns(rows)
    forward = paired_difference(one, other, speakers)
    backward = paired_difference(other, one, speakers)
    assert forward.difference == -backward.difference
    assert forward.interval == pytest.approx((-backward.interval[1], -backward.interval[0]))
    assert forward.p_value == backward.p_value
    assert forward.interval[0] <= forward.difference <= forward.interval[1]
    assert 0 < forward.p_value <= 1


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=10, unique=True))
def test_the_interval_over_seeds_is_scipys_t_interval(thousandths: list[int]) -> None:
    values = [value / 1000 for value in thousandths]
    found = mean_over_seeds(values)
    scale = stats.sem(values)
    reference = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=scale)
    assert found.interval == pytest.approx(tuple(reference), abs=1e-9)
    assert found.sd == pytest.approx(np.std(values, ddof=1))


def test_one_seed_has_no_spread() -> None:
    found = mean_over_seeds([0.93])
    assert (found.n, found.mean, found.sd, found.interval) == (1, 0.93, None, None)
    with pytest.raises(ValueError, match="no values"):
        mean_over_seeds([])
