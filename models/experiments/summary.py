"""Outcomes of many seeds as rows of a table: means, intervals, tests against the baseline.

Variants are paired with their baseline by seed. Two tests of "no difference" stand side by side:
Student's paired t, and Wilcoxon's signed ranks, which asks nothing of the distribution but cannot
go below p = 2^(1 - n) with n seeds. Both are corrected by Holm's method (1979) over the variants of
a metric. "Equal" is said only where two one-sided t tests (Schuirmann 1987) show at 5 % that the
difference lies within the margin that the experiment's file set beforehand; each such claim stands
for itself and is not corrected. Where the difference is the same for every seed, these tests have
no spread to go by, and none is made. Failed runs are counted with Wilson's interval, and compared
by McNemar's exact test, paired by seed and corrected likewise.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_1samp, wilcoxon

from entrain.deploy.statistics import (
    Booleans,
    Interval,
    Mean,
    mcnemar,
    mean_over_seeds,
    wilson_interval,
)
from entrain.deploy.toml import place
from entrain.models.experiments.papers import Figure, Published
from entrain.models.experiments.specification import Experiment, Metric
from entrain.models.experiments.store import Record

LEVEL = 0.05
# Differences that are closer than this share of the figures are the same: the rest is rounding.
ROUNDING = 1e-12

# Figures by seed.
Values = Mapping[int, float]


@dataclass(frozen=True)
class Comparison:
    """A variant less its baseline, over the seeds that both have.

    Args:
        baseline: its name.
        n: how many pairs.
        difference: the mean of the differences.
        interval: its 95 % t interval; None with a single pair, and where all pairs differ alike.
        t_p, wilcoxon_p: two-sided p values of no difference; None likewise.
        t_p_holm, wilcoxon_p_holm: corrected over the variants of the metric.
        equivalence_p: of a difference as large as the margin; None likewise, or without margin.
        failures_p: McNemar's exact two-sided p of as many failed runs; None with a single pair or
            without a threshold.
        failures_p_holm: corrected over the variants of the metric.
        verdict: ``equal within 1.0``, ``differs``, ``no spread`` and the like; empty for the one
            pair of an experiment that asks for no more.
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
    failures_p: float | None
    failures_p_holm: float | None
    verdict: str

    @property
    def is_equal(self) -> bool:
        """Whether the difference is shown to lie within the margin."""
        return self.equivalence_p is not None and self.equivalence_p < LEVEL

    @property
    def verdict_p(self) -> float | None:
        """The p value on which the verdict rests: of the margin's two tests, or of Student's."""
        return self.equivalence_p if self.is_equal else self.t_p_holm


@dataclass(frozen=True)
class Row:
    """One variant's figures for one metric.

    Args:
        variant, title: its name, and the one for people.
        metric: the metric's name.
        values: by seed.
        mean: over seeds; None where no run has ended.
        failures: runs worse than the metric's threshold; None where it has none.
        failures_interval: Wilson's 95 % interval of their share; None likewise, or without runs.
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
    failures_interval: Interval | None
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
        failures = {variant: _failures(values[variant], metric) for variant in experiment.variants}
        of_metric = [
            Row(
                variant=variant.name,
                title=variant.title,
                metric=name,
                values=values[variant.name],
                mean=_mean(values[variant.name]),
                failures=failures[variant.name],
                failures_interval=_share(failures[variant.name], len(values[variant.name])),
                comparison=_compare(variant.baseline, variant.name, values, metric),
                published=published.figure(variant.name, name),
                seconds=float(np.mean(seconds[variant.name])) if seconds[variant.name] else None,
            )
            for variant in experiment.variants.values()
        ]
        rows += _judged(of_metric, metric, experiment.seeds)
    return rows


def missing(experiment: Experiment, records: Sequence[Record]) -> list[str]:
    """What the file asks for and no record has, such as a name misspelt: a sentence each."""
    metrics = {name for record in records for name in record.metrics}
    curves = {name for record in records for name in record.curves}
    asked = [("metric", name, metrics, ["metrics", name]) for name in experiment.metrics]
    asked += [
        ("curve", plot.y, curves, ["plots", "y"])
        for plot in experiment.plots
        if plot.kind == "curve"
    ]
    return [
        f"{place(experiment.path, keys)}: no run has a {kind} {name!r}; "
        f"there are: {', '.join(sorted(known)) or 'none'}."
        for kind, name, known, keys in asked
        if records and name not in known
    ]


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
        ValueError: all differences are the same, or there is but one.
    """
    values = np.asarray(differences, dtype=np.float64)
    if np.ptp(values) == 0:
        raise ValueError("two different differences at least")
    above = ttest_1samp(values, -margin, alternative="greater").pvalue
    below = ttest_1samp(values, margin, alternative="less").pvalue
    return float(max(above, below))


def _mean(values: Values) -> Mean | None:
    return mean_over_seeds(list(values.values())) if values else None


def _failures(values: Values, metric: Metric) -> int | None:
    if metric.failure is None:
        return None
    return int(_failed(np.array(list(values.values())), metric.failure, metric).sum())


def _failed(values: NDArray[np.float64], threshold: float, metric: Metric) -> Booleans:
    return values < threshold if metric.better == "higher" else values > threshold


def _share(failures: int | None, runs: int) -> Interval | None:
    return wilson_interval(failures, runs) if failures is not None and runs else None


def _compare(
    baseline: str, variant: str, values: Mapping[str, Values], metric: Metric
) -> Comparison | None:
    """Not yet corrected, and without the verdict that follows from it."""
    seeds = [seed for seed in values[variant] if seed in values[baseline]]
    if variant == baseline or not seeds:
        return None
    mine, theirs = (
        np.array([values[name][seed] for seed in seeds]) for name in (variant, baseline)
    )
    differences = mine - theirs
    mean = mean_over_seeds(list(map(float, differences)))
    # A single pair has none either.
    spread = np.ptp(differences) > ROUNDING * max(np.abs(mine).max(), np.abs(theirs).max())
    return Comparison(
        baseline=baseline,
        n=len(seeds),
        difference=mean.mean,
        interval=mean.interval if spread else None,
        t_p=float(ttest_1samp(differences, 0.0).pvalue) if spread else None,
        wilcoxon_p=_signed_ranks(differences) if spread else None,
        t_p_holm=None,
        wilcoxon_p_holm=None,
        equivalence_p=(
            equivalence(list(differences), metric.margin)
            if spread and metric.margin is not None
            else None
        ),
        failures_p=_mcnemar(mine, theirs, metric),
        failures_p_holm=None,
        verdict="",
    )


def _mcnemar(
    mine: NDArray[np.float64], theirs: NDArray[np.float64], metric: Metric
) -> float | None:
    if metric.failure is None or mine.size < 2:
        return None
    return mcnemar(*(~_failed(figures, metric.failure, metric) for figures in (mine, theirs)))


def _signed_ranks(differences: NDArray[np.float64]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ties and zeros in a handful of seeds
        return float(wilcoxon(differences).pvalue)


def _judged(rows: list[Row], metric: Metric, seeds: int) -> list[Row]:
    """With the corrected p values, and the verdicts that follow from them."""
    t_p = _holm_by_variant(rows, lambda one: one.t_p)
    wilcoxon_p = _holm_by_variant(rows, lambda one: one.wilcoxon_p)
    failures_p = _holm_by_variant(rows, lambda one: one.failures_p)
    judged: list[Row] = []
    for row in rows:
        comparison = row.comparison
        if comparison is not None:
            comparison = replace(
                comparison,
                t_p_holm=t_p.get(row.variant),
                wilcoxon_p_holm=wilcoxon_p.get(row.variant),
                failures_p_holm=failures_p.get(row.variant),
            )
            comparison = replace(comparison, verdict=_verdict(comparison, metric, seeds))
        judged.append(replace(row, comparison=comparison))
    return judged


def _holm_by_variant(
    rows: Sequence[Row], p_value: Callable[[Comparison], float | None]
) -> Mapping[str, float]:
    found = {
        row.variant: p
        for row in rows
        if row.comparison is not None and (p := p_value(row.comparison)) is not None
    }
    return dict(zip(found, holm(list(found.values())), strict=True))


def _verdict(comparison: Comparison, metric: Metric, seeds: int) -> str:
    """In words; ``seeds`` is how many the experiment asks for."""
    if comparison.n == 1:
        return "one seed" if seeds > 1 else ""
    if comparison.t_p_holm is None:
        return "no spread"
    if comparison.is_equal:
        return f"equal within {metric.margin}"
    if comparison.t_p_holm < LEVEL:
        return "differs"
    return "not shown equal" if metric.margin is not None else "no difference shown"
