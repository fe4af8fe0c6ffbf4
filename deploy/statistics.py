"""Intervals and paired tests for accuracies measured on clips of many speakers.

Clips of one speaker hang together, so what is resampled is the speaker, not the clip. Everything
random is seeded: the same predictions give the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit
from scipy.stats import binomtest

Interval = tuple[float, float]
Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]

RESAMPLES = 5_000


@dataclass(frozen=True)
class Mean:
    """A mean of ``n`` values, their standard deviation and the t interval of the mean.

    With a single value there is neither deviation nor interval.
    """

    n: int
    mean: float
    sd: float | None
    interval: Interval | None


@dataclass(frozen=True)
class PairedDifference:
    """Accuracy less the baseline's on the same clips, its interval, and the test of no difference.

    ``p_value`` is two-sided, from flipping whole speakers between the two.
    """

    difference: float
    interval: Interval
    p_value: float
    n: int
    n_speakers: int


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion (Wilson 1927): right also near 0 and 1.

    Raises:
        ValueError: n is not positive, or successes are not within 0..n.
    """
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    z = float(ndtri(0.5 + confidence / 2))
    proportion = successes / n
    centre = proportion + z * z / (2 * n)
    spread = z * math.sqrt(proportion * (1 - proportion) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # At 0 and n the formula gives the end exactly; rounding must not carry it past.
    low = 0.0 if successes == 0 else (centre - spread) / scale
    high = 1.0 if successes == n else (centre + spread) / scale
    return low, high


def accuracy_interval(
    correct: Booleans, speakers: Sequence[str], *, seed: int = 0, confidence: float = 0.95
) -> Interval:
    """Percentile interval of the accuracy, by resampling speakers.

    Where resampling says nothing (one speaker, or every clip alike) it is Wilson's interval.

    Args:
        correct: [N], whether each clip was classified rightly.
        speakers: [N], who speaks in it.
        seed: of the resampling.
        confidence: of the interval.

    Raises:
        ValueError: no clips, or not as many speakers as clips.
    """
    hits, clips = _by_speaker(correct.astype(np.int64), speakers)
    total, n = int(hits.sum()), int(clips.sum())
    if len(clips) < 2 or total in (0, n):
        return wilson_interval(total, n, confidence)
    return _resampled_interval(hits, clips, seed, confidence)


def confusion_matrix(truth: Integers, predicted: Integers, classes: int) -> Integers:
    """[classes, classes] counts: a row a true class, a column a predicted one.

    Raises:
        ValueError: a class is not within 0..classes-1, or the lengths differ.
    """
    if truth.shape != predicted.shape:
        raise ValueError(f"{truth.shape} true classes and {predicted.shape} predicted")
    for values in (truth, predicted):
        if values.size and not 0 <= int(values.min()) <= int(values.max()) < classes:
            raise ValueError(f"a class outside 0..{classes - 1}")
    counts = np.bincount(truth * classes + predicted, minlength=classes * classes)
    return counts.astype(np.int64).reshape(classes, classes)


def balanced_accuracy(confusion: Integers) -> float:
    """The mean recall over the classes that have clips.

    Raises:
        ValueError: no class has any.
    """
    clips = confusion.sum(axis=1)
    present = clips > 0
    if not present.any():
        raise ValueError("no clips")
    return float(np.mean(np.diagonal(confusion)[present] / clips[present]))


def mcnemar(correct: Booleans, baseline: Booleans) -> float:
    """Two-sided exact p of McNemar's test (1947) that two classifiers err equally often.

    It takes clips as independent; where speakers repeat, :func:`paired_difference` is right.
    """
    better = int(np.sum(correct & ~baseline))
    worse = int(np.sum(baseline & ~correct))
    if better + worse == 0:
        return 1.0
    return float(binomtest(better, better + worse, 0.5).pvalue)


def paired_difference(
    correct: Booleans, baseline: Booleans, speakers: Sequence[str], *, seed: int = 0
) -> PairedDifference:
    """Compare two classifiers on the same clips, speaker by speaker.

    The interval resamples speakers; the p-value comes from a permutation test in which every
    speaker's clips change sides together, exact up to the number of permutations drawn.

    Args:
        correct: [N], whether the one was right.
        baseline: [N], whether the other was.
        speakers: [N], who speaks.
        seed: of resampling and permutations.

    Raises:
        ValueError: no clips, or the lengths differ.
    """
    if correct.shape != baseline.shape:
        raise ValueError(f"{correct.shape} and {baseline.shape} clips")
    gains, clips = _by_speaker(correct.astype(np.int64) - baseline.astype(np.int64), speakers)
    difference = int(gains.sum()) / int(clips.sum())
    interval = (difference, difference)
    if len(clips) > 1:
        interval = _resampled_interval(gains, clips, seed, 0.95)
    return PairedDifference(
        difference, interval, _sign_flip_p(gains, seed), int(clips.sum()), len(clips)
    )


def mean_over_seeds(values: Sequence[float], confidence: float = 0.95) -> Mean:
    """Mean, standard deviation (n - 1) and Student's t interval of the mean.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("no values")
    n, mean = len(values), float(np.mean(values))
    if n == 1:
        return Mean(n, mean, None, None)
    sd = float(np.std(values, ddof=1))
    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * sd / math.sqrt(n)
    return Mean(n, mean, sd, (mean - half, mean + half))


def _by_speaker(values: Integers, speakers: Sequence[str]) -> tuple[Integers, Integers]:
    """Sum of the values, and number of clips, of each speaker: [S] and [S]."""
    if len(speakers) != values.size or not speakers:
        raise ValueError(f"{values.size} clips of {len(speakers)} speakers named")
    _, index = np.unique(np.asarray(speakers), return_inverse=True)
    clips = np.bincount(index)
    sums = np.zeros(len(clips), dtype=np.int64)
    np.add.at(sums, index, values)
    return sums, clips.astype(np.int64)


def _resampled_interval(sums: Integers, clips: Integers, seed: int, confidence: float) -> Interval:
    """Percentile interval of sum(sums) / sum(clips) over resampled speakers; holds the estimate."""
    count = len(clips)
    random = np.random.default_rng(seed)
    times = random.multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    ratios = (times @ sums) / (times @ clips)
    tail = (1 - confidence) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    estimate = sums.sum() / clips.sum()
    return float(min(low, estimate)), float(max(high, estimate))


def _sign_flip_p(gains: Integers, seed: int) -> float:
    moved = gains[gains != 0]
    if moved.size == 0:
        return 1.0
    random = np.random.default_rng(seed)
    signs = random.integers(0, 2, size=(RESAMPLES, moved.size), dtype=np.int8) * 2 - 1
    as_far = np.abs(signs @ moved) >= abs(int(moved.sum()))
    return float((1 + as_far.sum()) / (1 + RESAMPLES))
