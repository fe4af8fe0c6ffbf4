"""What stands under ``comparisons`` in results.json: means over seeds, paired tests, ratios.

Everything is compared with a baseline mechanism, run by run on the same board, task and seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.meters.modelled import modelled_ratio
from entrain.deploy.results import Comparison, Figure, PairedTest, Ratio, Result, SeedSummary
from entrain.deploy.statistics import mean_over_seeds, paired_difference

BASELINE = "softmax"


@dataclass(frozen=True)
class Predictions:
    """What a row's device answered on each sample.

    Args:
        row: the row they belong to.
        truth: [N] true classes.
        predicted: [N] classes the device chose.
        groups: [N] which group each is of, such as who speaks; None where each stands for itself.
        subsets: bool [N] by name, for samples that are reported on their own too.
    """

    row: Result
    truth: NDArray[np.int64]
    predicted: NDArray[np.int64]
    groups: tuple[str, ...] | None
    subsets: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)


def compare(predictions: Sequence[Predictions], baseline: str = BASELINE) -> tuple[Comparison, ...]:
    """Every comparison there is to make among these rows.

    Rows that are incomplete are left out: they ran on fewer samples.
    """
    whole = [item for item in predictions if item.row.complete]
    rows = [item.row for item in whole]
    return (
        *seed_summaries(rows, baseline),
        *paired_tests(whole, baseline),
        *ratios(rows, baseline),
    )


def seed_summaries(rows: Sequence[Result], baseline: str = BASELINE) -> list[SeedSummary]:
    """Device accuracy over seeds: of every mechanism, and less the baseline's seed by seed.

    Then the same of every subset, the metric called after it: ``hard accuracy``.
    """
    names = dict.fromkeys(name for row in rows for name in row.subsets or ())
    found = _metric_summaries(rows, baseline, "accuracy", _accuracy)
    for name in names:
        found += _metric_summaries(rows, baseline, f"{name} accuracy", _of_subset(name))
    return found


Metric = Callable[[Result], float | None]


def _accuracy(row: Result) -> float | None:
    return row.accuracy.device if row.accuracy else None


def _of_subset(name: str) -> Metric:
    return lambda row: row.subsets[name].device if row.subsets and name in row.subsets else None


def _metric_summaries(
    rows: Sequence[Result], baseline: str, metric: str, of: Metric
) -> list[SeedSummary]:
    groups: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in rows:
        value = of(row)
        if value is not None and row.seed is not None:
            groups.setdefault((row.task, row.board, row.mechanism), {})[row.seed] = value
    summaries = []
    for (task, board, mechanism), by_seed in groups.items():
        values = list(by_seed.values())
        summaries.append(_summary(task, board, mechanism, None, metric, values))
        other = groups.get((task, board, baseline), {})
        shared = [by_seed[seed] - other[seed] for seed in by_seed if seed in other]
        if mechanism != baseline and shared:
            difference = f"{metric} difference"
            summaries.append(_summary(task, board, mechanism, baseline, difference, shared))
    return summaries


def paired_tests(predictions: Sequence[Predictions], baseline: str = BASELINE) -> list[PairedTest]:
    """Every run against the baseline of its seed on the same samples, and on every subset."""
    by_row = {id(item.row): item for item in predictions}
    tests = []
    for row, base in _pairs([item.row for item in predictions], baseline):
        one, other = by_row[id(row)], by_row[id(base)]
        if not np.array_equal(one.truth, other.truth) or one.groups != other.groups:
            continue  # not the same samples: nothing is paired
        tests.append(_paired(one, other, None, np.ones(len(one.truth), np.bool_)))
        tests += [
            _paired(one, other, name, chosen)
            for name, chosen in one.subsets.items()
            if chosen.any()
        ]
    return tests


def _paired(
    one: Predictions, other: Predictions, subset: str | None, chosen: NDArray[np.bool_]
) -> PairedTest:
    groups = None
    if one.groups is not None:
        groups = [group for group, wanted in zip(one.groups, chosen, strict=True) if wanted]
    found = paired_difference(
        (one.predicted == one.truth)[chosen], (other.predicted == other.truth)[chosen], groups
    )
    row, base = one.row, other.row
    resampled = f"{row.sample if groups is None else f'whole {row.group}'}s"
    return PairedTest(
        task=row.task,
        board=row.board,
        run=row.run,
        baseline=base.run,
        mechanism=row.mechanism,
        baseline_mechanism=base.mechanism,
        subset=subset,
        difference=found.difference,
        ci95=found.interval,
        p_value=found.p_value,
        method=f"permutation of {resampled}; interval by resampling {resampled}",
        n=found.n,
        n_groups=found.n_groups,
    )


def ratios(rows: Sequence[Result], baseline: str = BASELINE) -> list[Ratio]:
    """Counted instructions and modelled cycles of every run over those of its baseline.

    On one board and clock the ratio of modelled cycles is that of time and energy too.
    """
    found = []
    for row, base in _pairs(rows, baseline):
        if row.instructions is not None and base.instructions:
            ratio = Figure(value=row.instructions / base.instructions, kind="counted")
            found.append(_ratio(row, base, "instructions", ratio))
        cycles = (row.cycles, base.cycles)
        if cycles[0] is not None and cycles[1] is not None:
            found.append(_ratio(row, base, "cycles", _cycles_ratio(cycles[0], cycles[1])))
    return found


def _cycles_ratio(cycles: Figure, baseline: Figure) -> Figure:
    if cycles.kind == "modelled":
        return modelled_ratio(cycles, baseline)
    return Figure(value=cycles.value / baseline.value, kind=cycles.kind)


def _ratio(
    row: Result, base: Result, quantity: Literal["instructions", "cycles"], ratio: Figure
) -> Ratio:
    return Ratio(
        task=row.task,
        board=row.board,
        run=row.run,
        baseline=base.run,
        mechanism=row.mechanism,
        baseline_mechanism=base.mechanism,
        quantity=quantity,
        ratio=ratio,
    )


def _summary(
    task: str, board: str, mechanism: str, base: str | None, metric: str, values: list[float]
) -> SeedSummary:
    mean = mean_over_seeds(values)
    return SeedSummary(
        task=task,
        board=board,
        mechanism=mechanism,
        baseline_mechanism=base,
        metric=metric,
        n_seeds=mean.n,
        mean=mean.mean,
        sd=mean.sd,
        ci95=mean.interval,
    )


def _pairs(rows: Iterable[Result], baseline: str) -> Iterator[tuple[Result, Result]]:
    """Every row that is not the baseline's, with the baseline of its task, board and seed."""
    known = list(rows)
    bases = {(r.task, r.board, r.seed): r for r in known if r.mechanism == baseline}
    for row in known:
        base = bases.get((row.task, row.board, row.seed))
        if base is not None and row.mechanism != baseline:
            yield row, base
