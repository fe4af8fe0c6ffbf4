"""Intervals and paired tests for accuracies measured on samples that may hang together.

Clips of one speaker do, so what is resampled is the group, such as a speaker, not the sample;
samples without groups stand for themselves. Everything random is seeded: the same predictions give
the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri, stdtrit
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
    """Accuracy less the baseline's on the same samples, its interval, and a test of no difference.

    ``p_value`` is two-sided, from flipping whole groups between the two. ``n_groups`` is None
    where samples stand for themselves.
    """

    difference: float
    interval: Interval
    p_value: float
    n: int
    n_groups: int | None


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


def poisson_interval(count: int, exposure: float, confidence: float = 0.95) -> Interval:
    """The exact interval of a rate, from so many events (Garwood 1936).

    Args:
        count: events.
        exposure: in how long, or how much; positive. The rate is per unit of it.
        confidence: of the interval.

    Raises:
        ValueError: the exposure is not positive, or the count negative.
    """
    if exposure <= 0 or count < 0:
        raise ValueError(f"{count} events in {exposure}")
    tail = (1 - confidence) / 2
    low = float(gammaincinv(count, tail)) if count else 0.0
    return low / exposure, float(gammaincinv(count + 1, 1 - tail)) / exposure


def accuracy_interval(
    correct: Booleans, groups: Sequence[str] | None, *, seed: int = 0, confidence: float = 0.95
) -> Interval:
    """Percentile interval of the accuracy, by resampling groups.

    Where that says nothing (no groups, one group, or every sample alike) it is Wilson's interval.

    Args:
        correct: [N], whether each sample was classified rightly.
        groups: [N], the group of each, such as who speaks; None where each stands for itself.
        seed: of the resampling.
        confidence: of the interval.

    Raises:
        ValueError: no samples, or not as many groups as samples.
    """
    hits, sizes = _by_group(correct.astype(np.int64), groups)
    total, n = int(hits.sum()), int(sizes.sum())
    if groups is None or len(sizes) < 2 or total in (0, n):
        return wilson_interval(total, n, confidence)
    return _resampled_interval(hits, sizes, seed, confidence)


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
    """The mean recall over the classes that have samples.

    Raises:
        ValueError: no class has any.
    """
    sizes = confusion.sum(axis=1)
    present = sizes > 0
    if not present.any():
        raise ValueError("no samples")
    return float(np.mean(np.diagonal(confusion)[present] / sizes[present]))


def mcnemar(correct: Booleans, baseline: Booleans) -> float:
    """Two-sided exact p of McNemar's test (1947) that two classifiers err equally often.

    It takes samples as independent; where groups repeat, :func:`paired_difference` is right.
    """
    better = int(np.sum(correct & ~baseline))
    worse = int(np.sum(baseline & ~correct))
    if better + worse == 0:
        return 1.0
    return float(binomtest(better, better + worse, 0.5).pvalue)


def paired_difference(
    correct: Booleans, baseline: Booleans, groups: Sequence[str] | None, *, seed: int = 0
) -> PairedDifference:
    """Compare two classifiers on the same samples, group by group.

    The interval resamples groups; the p-value comes from a permutation test in which every
    group's samples change sides together, exact up to the number of permutations drawn.

    Args:
        correct: [N], whether the one was right.
        baseline: [N], whether the other was.
        groups: [N], such as who speaks; None where each sample stands for itself.
        seed: of resampling and permutations.

    Raises:
        ValueError: no samples, or the lengths differ.
    """
    if correct.shape != baseline.shape:
        raise ValueError(f"{correct.shape} and {baseline.shape} samples")
    gains, sizes = _by_group(correct.astype(np.int64) - baseline.astype(np.int64), groups)
    difference = int(gains.sum()) / int(sizes.sum())
    interval = (difference, difference)
    if len(sizes) > 1:
        interval = _resampled_interval(gains, sizes, seed, 0.95)
    counted = None if groups is None else len(sizes)
    return PairedDifference(
        difference, interval, _sign_flip_p(gains, seed), int(sizes.sum()), counted
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


def _by_group(values: Integers, groups: Sequence[str] | None) -> tuple[Integers, Integers]:
    """Sum of the values, and number of samples, of each group: [G] and [G]."""
    if values.size == 0:
        raise ValueError("no samples")
    if groups is None:
        return values, np.ones(values.size, np.int64)
    if len(groups) != values.size:
        raise ValueError(f"{values.size} samples, and groups for {len(groups)}")
    _, index = np.unique(np.asarray(groups), return_inverse=True)
    sizes = np.bincount(index)
    sums = np.zeros(len(sizes), dtype=np.int64)
    np.add.at(sums, index, values)
    return sums, sizes.astype(np.int64)


def _resampled_interval(sums: Integers, sizes: Integers, seed: int, confidence: float) -> Interval:
    """Percentile interval of sum(sums) / sum(sizes) over resampled groups; holds the estimate.

    Groups with the same sum and size are drawn as one kind: the same distribution, in less memory.
    Kinds stand in the order in which they appear, so that sums of the other sign draw alike.
    """
    kinds, first, counts = np.unique(
        np.stack([sums, sizes]), axis=1, return_index=True, return_counts=True
    )
    order = np.argsort(first)
    kinds, counts = kinds[:, order], counts[order]
    random = np.random.default_rng(seed)
    times = random.multinomial(len(sizes), counts / len(sizes), size=RESAMPLES)
    ratios = (times @ kinds[0]) / (times @ kinds[1])
    tail = (1 - confidence) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    estimate = sums.sum() / sizes.sum()
    return float(min(low, estimate)), float(max(high, estimate))


def _sign_flip_p(gains: Integers, seed: int) -> float:
    moved = gains[gains != 0]
    if moved.size == 0:
        return 1.0
    random = np.random.default_rng(seed)
    signs = random.integers(0, 2, size=(RESAMPLES, moved.size), dtype=np.int8) * 2 - 1
    as_far = np.abs(signs @ moved) >= abs(int(moved.sum()))
    return float((1 + as_far.sum()) / (1 + RESAMPLES))
