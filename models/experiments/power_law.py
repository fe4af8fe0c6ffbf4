"""The gap to the baseline over d_osc, fitted as gap = c d^-b (the first paper's language models).

A straight line by least squares through the logarithms of the gaps, each the mean over seeds of a
variant's figure less the baseline's of the same seed. The interval of b comes from resampling
seeds: variants and baseline of a seed stay together. With few seeds it is too narrow: in a
simulation of the paper's gaps it held the slope in 74 % of trials of 3 seeds, and 82 % of 5. The
logarithm of a gap that is not positive does not exist: such a point (the variant is no worse than
its baseline) is left out and named, in a resample likewise; a resample in which fewer than two
points are left gives no slope, and is only counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.statistics import Interval
from entrain.models.experiments.specification import Experiment, build_workload
from entrain.models.experiments.store import Record
from entrain.models.experiments.summary import values_of

RESAMPLES = 2_000
CONFIDENCE = 0.95
# Below so many seeds the interval is said to be too narrow.
FEW_SEEDS = 10

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """A variant's mean gap to its baseline, positive where the baseline is better."""

    variant: str
    d_osc: int
    gap: float


@dataclass(frozen=True)
class PowerLawFit:
    """gap = c d^-b.

    Args:
        metric: whose gap.
        points: all of them, by d_osc.
        left_out: variants whose gap is not positive.
        c, b: None where fewer than two points are left.
        interval: 95 % interval of b; None with a single seed, or if most resamples were unusable.
        seeds: how many all the variants and the baseline have.
        unusable: resamples in which fewer than two gaps were positive.
    """

    metric: str
    points: tuple[Point, ...]
    left_out: tuple[str, ...]
    c: float | None
    b: float | None
    interval: Interval | None
    seeds: int
    unusable: int


def fit_experiment(
    experiment: Experiment, budget: str, records: Sequence[Record]
) -> PowerLawFit | None:
    """The fit that the experiment's file asks for; None if it asks for none, or no seed is whole.

    Raises:
        UsageError: a variant's settings are wrong, or say nothing of d_osc.
    """
    law = experiment.power_law
    if law is None:
        return None
    sign = 1.0 if experiment.metrics[law.metric].better == "lower" else -1.0
    figures = {
        name: values_of(records, name, law.metric)
        for name in {*law.variants, *(experiment.variants[name].baseline for name in law.variants)}
    }
    seeds = sorted(set.intersection(*(set(values) for values in figures.values())))
    if not seeds:
        return None
    sizes = {name: _d_osc(experiment, budget, name) for name in law.variants}
    variants = sorted(law.variants, key=sizes.__getitem__)
    gaps = {
        name: np.array(
            [
                sign * (figures[name][seed] - figures[experiment.variants[name].baseline][seed])
                for seed in seeds
            ]
        )
        for name in variants
    }
    return fit_power_law(law.metric, sizes, gaps)


def fit_power_law(
    metric: str, sizes: Mapping[str, int], gaps: Mapping[str, Floats], *, seed: int = 0
) -> PowerLawFit:
    """Fit the mean gaps, and resample the seeds.

    Args:
        metric: whose gaps they are.
        sizes: d_osc by variant.
        gaps: [S] by variant, one a seed, the same seeds in the same order.
        seed: of the resampling.

    Raises:
        ValueError: no seeds, or not as many of every variant.
    """
    names = list(gaps)
    table = np.stack([gaps[name] for name in names])  # [variants, seeds]
    if table.shape[1] == 0:
        raise ValueError("no seeds")
    dims = np.array([float(sizes[name]) for name in names])
    means = table.mean(axis=1)
    fitted = _line(dims, means)
    interval, unusable = _bootstrap(dims, table, seed) if table.shape[1] > 1 else (None, 0)
    return PowerLawFit(
        metric=metric,
        points=tuple(
            Point(name, sizes[name], float(gap)) for name, gap in zip(names, means, strict=True)
        ),
        left_out=tuple(name for name, gap in zip(names, means, strict=True) if not gap > 0),
        c=fitted[0] if fitted else None,
        b=fitted[1] if fitted else None,
        interval=interval if fitted else None,
        seeds=table.shape[1],
        unusable=unusable,
    )


def _line(dims: Floats, gaps: Floats) -> tuple[float, float] | None:
    """The c and b by least squares in logarithms, of the positive gaps; None if < 2."""
    positive = gaps > 0
    if positive.sum() < 2 or np.ptp(dims[positive]) == 0:
        return None
    slope, intercept = np.polyfit(np.log(dims[positive]), np.log(gaps[positive]), 1)
    return float(np.exp(intercept)), float(-slope)


def _bootstrap(dims: Floats, table: Floats, seed: int) -> tuple[Interval | None, int]:
    """The percentile interval of b, and how many resamples were unusable."""
    count = table.shape[1]
    random = np.random.default_rng(seed)
    draws = random.integers(0, count, size=(RESAMPLES, count))
    lines = [_line(dims, table[:, draw].mean(axis=1)) for draw in draws]
    slopes = [line[1] for line in lines if line is not None]
    unusable = RESAMPLES - len(slopes)
    if unusable > RESAMPLES // 2:
        return None, unusable
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(slopes, [tail, 1 - tail])
    return (float(low), float(high)), unusable


def _d_osc(experiment: Experiment, budget: str, variant: str) -> int:
    """The oscillators' dimension: that of the workload's field `attention`."""
    from entrain.deploy.errors import UsageError
    from entrain.deploy.toml import place
    from entrain.models.attention import AttentionConfig

    workload = build_workload(experiment, experiment.budget(budget), experiment.variants[variant])
    attention = getattr(workload, "attention", None)
    if not isinstance(attention, str):
        raise UsageError(
            f"the variant {variant!r} has no d_osc: its workload has no field 'attention'",
            where=place(experiment.path, ["power_law"]),
            remedy="remove the power law",
        )
    return AttentionConfig.parse(attention).d_osc
