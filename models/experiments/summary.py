"""Outcomes of many seeds as rows of a table: means, intervals, tests against the baseline.

Variants are paired with their baseline by seed. Two tests of "no difference" stand side by side:
Student's paired t, and Wilcoxon's signed ranks, which asks nothing of the distribution but cannot
go below p = 2^(1 - n) with n seeds. Both are corrected by Holm's method (1979) over the variants of
a metric. "Equal" is said only where two one-sided t tests (Schuirmann 1987) show at 5 % that the
difference lies within the margin that the experiment's file set beforehand; each such claim stands
for itself and is not corrected.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_1samp, wilcoxon

from entrain.deploy.statistics import Interval, Mean, mean_over_seeds
from entrain.models.experiments.papers import Figure, Published
from entrain.models.experiments.specification import Experiment, Metric
from entrain.models.experiments.store import Record

LEVEL = 0.05

# Figures by seed.
Values = Mapping[int, float]


@dataclass(frozen=True)
class Comparison:
    """A variant less its baseline, over the seeds that both have.

    Args:
        baseline: its name.
        n: how many pairs.
        difference: the mean of the differences.
        interval: its 95 % t interval; None with a single pair.
        t_p, wilcoxon_p: two-sided p values of no difference; None with a single pair.
        t_p_holm, wilcoxon_p_holm: corrected over the variants of the metric.
        equivalence_p: of a difference as large as the margin; None without margin or pairs.
        verdict: ``equal within 1.0``, ``differs``, ``not shown equal`` and the like.
    """

    baseline: str
    n: int
    difference: float
    interval: Interval | None
    t_p: float | None
    wilcoxon_p: float | None
    t_p_holm: float | None
    wilcoxon_p_holm: float | None
    equivalence_p: float | None
    verdict: str


@dataclass(frozen=True)
class Row:
    """One variant's figures for one metric.

    Args:
        variant, title: its name, and the one for people.
        metric: the metric's name.
        values: by seed.
        mean: over seeds; None where no run has ended.
        failures: runs worse than the metric's threshold; None where it has none.
        comparison: with the baseline; None for the baseline, and where no seed is common to both.
        published: the paper's figure, or None.
        seconds: mean duration of a run.
    """

    variant: str
    title: str
    metric: str
    values: Values
    mean: Mean | None
    failures: int | None
    comparison: Comparison | None
    published: Figure | None
    seconds: float | None

    @property
    def to_published(self) -> float | None:
        """Our mean less the paper's."""
        if self.mean is None or self.published is None:
            return None
        return self.mean.mean - self.published.mean


def summarise(experiment: Experiment, records: Sequence[Record], published: Published) -> list[Row]:
    """A row a variant and metric, variants of one metric together, in the file's order.

    A figure that a run does not have, or that is not a number, is left out of the means.
    """
    rows: list[Row] = []
    for name, metric in experiment.metrics.items():
        values = {variant: values_of(records, variant, name) for variant in experiment.variants}
        seconds = {
            variant: [record.seconds for record in records if record.variant == variant]
            for variant in experiment.variants
        }
        of_metric = [
            Row(
                variant=variant.name,
                title=variant.title,
                metric=name,
                values=values[variant.name],
                mean=_mean(values[variant.name]),
                failures=_failures(values[variant.name], metric),
                comparison=_compare(variant.baseline, variant.name, values, metric),
                published=published.figure(variant.name, name),
                seconds=float(np.mean(seconds[variant.name])) if seconds[variant.name] else None,
            )
            for variant in experiment.variants.values()
        ]
        rows += _corrected(of_metric, metric)
    return rows


def values_of(records: Sequence[Record], variant: str, metric: str) -> Values:
    """A variant's figures by seed, in the order of the seeds; those that are numbers."""
    found = {
        record.seed: record.metrics[metric]
        for record in records
        if record.variant == variant and metric in record.metrics
    }
    return {seed: found[seed] for seed in sorted(found) if math.isfinite(found[seed])}


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values corrected by Holm's step-down method, in the same order."""
    count = len(p_values)
    corrected = [0.0] * count
    highest = 0.0
    for rank, index in enumerate(sorted(range(count), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (count - rank) * p_values[index]))
        corrected[index] = highest
    return corrected


def equivalence(differences: Sequence[float], margin: float) -> float:
    """The p value of two one-sided t tests that the mean difference is within +-margin.

    Raises:
        ValueError: fewer than two differences.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.size < 2:
        raise ValueError("two differences at least")
    if np.ptp(values) == 0:  # no spread: the mean is what it is
        return 0.0 if abs(values[0]) < margin else 1.0
    above = ttest_1samp(values, -margin, alternative="greater").pvalue
    below = ttest_1samp(values, margin, alternative="less").pvalue
    return float(max(above, below))


def _mean(values: Values) -> Mean | None:
    return mean_over_seeds(list(values.values())) if values else None


def _failures(values: Values, metric: Metric) -> int | None:
    if metric.failure is None:
        return None
    sign = 1 if metric.better == "higher" else -1
    return sum(sign * value < sign * metric.failure for value in values.values())


def _compare(
    baseline: str, variant: str, values: Mapping[str, Values], metric: Metric
) -> Comparison | None:
    """Not yet corrected, and without the verdict that follows from it."""
    seeds = [seed for seed in values[variant] if seed in values[baseline]]
    if variant == baseline or not seeds:
        return None
    differences = np.array([values[variant][seed] - values[baseline][seed] for seed in seeds])
    mean = mean_over_seeds(list(map(float, differences)))
    paired = len(seeds) > 1
    tested = paired and metric.margin is not None
    return Comparison(
        baseline=baseline,
        n=len(seeds),
        difference=mean.mean,
        interval=mean.interval,
        t_p=_t_test(differences) if paired else None,
        wilcoxon_p=_signed_ranks(differences) if paired else None,
        t_p_holm=None,
        wilcoxon_p_holm=None,
        equivalence_p=equivalence(list(differences), metric.margin or 0.0) if tested else None,
        verdict="",
    )


def _t_test(differences: NDArray[np.float64]) -> float:
    if np.ptp(differences) == 0:  # no spread: t is 0 / 0 or infinite
        return 1.0 if differences[0] == 0 else 0.0
    return float(ttest_1samp(differences, 0.0).pvalue)


def _signed_ranks(differences: NDArray[np.float64]) -> float:
    if not differences.any():
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ties and zeros in a handful of seeds
        return float(wilcoxon(differences).pvalue)


def _corrected(rows: list[Row], metric: Metric) -> list[Row]:
    compared = [row.comparison for row in rows if row.comparison is not None]
    t_p = holm([one.t_p for one in compared if one.t_p is not None])
    wilcoxon_p = holm([one.wilcoxon_p for one in compared if one.wilcoxon_p is not None])
    pairs = iter(zip(t_p, wilcoxon_p, strict=True))
    corrected: list[Row] = []
    for row in rows:
        comparison = row.comparison
        if comparison is None:
            corrected.append(row)
            continue
        t, ranks = next(pairs) if comparison.t_p is not None else (None, None)
        comparison = replace(comparison, t_p_holm=t, wilcoxon_p_holm=ranks)
        comparison = replace(comparison, verdict=_verdict(comparison, metric))
        corrected.append(replace(row, comparison=comparison))
    return corrected


def _verdict(comparison: Comparison, metric: Metric) -> str:
    if comparison.t_p_holm is None:
        return "one seed"
    if comparison.equivalence_p is not None and comparison.equivalence_p < LEVEL:
        return f"equal within {metric.margin}"
    if comparison.t_p_holm < LEVEL:
        return "differs"
    return "not shown equal" if metric.margin is not None else "no difference shown"
