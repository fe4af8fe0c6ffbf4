"""The rows of results.json in the order the report shows them.

A section is one task on one board; in it a group is one mechanism, whose rows differ in their seed.
Softmax, the baseline, comes first and uniform attention, the control, last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from entrain.deploy.comparisons import BASELINE
from entrain.deploy.results import (
    Accuracy,
    PairedTest,
    Result,
    Results,
    SeedSummary,
    Subset,
)
from entrain.deploy.statistics import Interval, mean_over_seeds

CONTROL = "uniform"


@dataclass(frozen=True)
class Difference:
    """Accuracy less the baseline's, its 95 % interval, and over what that interval ranges."""

    value: float
    interval: Interval
    basis: str

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes zero."""
        return not self.interval[0] <= 0 <= self.interval[1]


@dataclass(frozen=True)
class Group:
    """One mechanism on one board. ``colour`` numbers the mechanism over the whole report."""

    mechanism: str
    colour: int
    rows: tuple[Result, ...]
    difference: Difference | None
    subset_differences: Mapping[str, Difference] = field(default_factory=dict)

    def mean(self, of: Callable[[Result], float | None]) -> float | None:
        """The mean over seeds of what ``of`` picks; None where no row has it."""
        found = [value for value in map(of, self.rows) if value is not None]
        return sum(found) / len(found) if found else None

    @property
    def accuracy(self) -> float | None:
        """Device accuracy, the mean over seeds."""
        return self.mean(lambda row: row.accuracy.device if row.accuracy else None)

    @property
    def accuracy_interval(self) -> Interval | None:
        """Over seeds where there are several, else over the samples of the one, or their groups."""
        return _interval([row.accuracy for row in self.rows if row.accuracy])

    def subset_accuracy(self, name: str) -> float | None:
        """Device accuracy on a subset, the mean over seeds."""
        return self.mean(lambda row: found.device if (found := subset_of(row, name)) else None)

    def subset_interval(self, name: str) -> Interval | None:
        """As ``accuracy_interval``, on a subset."""
        return _interval([one for row in self.rows if (one := subset_of(row, name))])

    @property
    def basis(self) -> str:
        """Over what the interval of the accuracy ranges."""
        return f"{len(self.rows)} seeds" if len(self.rows) > 1 else basis_of(self.rows[0])


@dataclass(frozen=True)
class Section:
    """One task on one board."""

    task: str
    board: str
    groups: tuple[Group, ...]

    @property
    def samples(self) -> str:
        """What its inputs are called: clips, sentences."""
        return samples_of(self.rows[0])

    @property
    def subsets(self) -> tuple[str, ...]:
        """The names of the subsets that are reported on their own too."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.subsets or ()))

    @property
    def rows(self) -> tuple[Result, ...]:
        """The rows of all its groups."""
        return tuple(row for group in self.groups for row in group.rows)

    def group(self, mechanism: str) -> Group | None:
        """The group of that mechanism, if it was measured here."""
        return next((one for one in self.groups if one.mechanism == mechanism), None)


def samples_of(row: Result) -> str:
    """What a row's inputs are called."""
    return f"{row.sample}s"


def basis_of(row: Result) -> str:
    """Over what the interval of one row's accuracy ranges: groups, or samples by themselves."""
    return f"{row.group or row.sample}s"


def subset_of(row: Result, name: str) -> Subset | None:
    """What a row says of a subset."""
    return (row.subsets or {}).get(name)


def _interval(found: Sequence[Accuracy | Subset]) -> Interval | None:
    values = [one.device for one in found if one.device is not None]
    if len(values) > 1:
        return mean_over_seeds(values).interval
    return found[0].ci95 if values else None


def sections(results: Results) -> list[Section]:
    """The sections, in the order their first rows stand in the file."""
    order = mechanisms(results.results)
    places = dict.fromkeys((row.task, row.board) for row in results.results)
    return [Section(task, board, _groups(results, task, board, order)) for task, board in places]


def mechanisms(rows: Iterable[Result]) -> list[str]:
    """The mechanisms there are: baseline, the others as they come, control."""
    found = list(dict.fromkeys(row.mechanism for row in rows))
    rank = {BASELINE: -1, CONTROL: 1}
    return sorted(found, key=lambda mechanism: rank.get(mechanism, 0))


def colours(order: list[str]) -> dict[str, int]:
    """A number a mechanism: 0 the baseline, 9 the control, 1..8 the others, over and over."""
    others = [mechanism for mechanism in order if mechanism not in (BASELINE, CONTROL)]
    numbers = {mechanism: 1 + index % 8 for index, mechanism in enumerate(others)}
    return {BASELINE: 0, CONTROL: 9, **numbers}


def _groups(results: Results, task: str, board: str, order: list[str]) -> tuple[Group, ...]:
    here = [row for row in results.results if (row.task, row.board) == (task, board)]
    colour = colours(order)
    names = dict.fromkeys(name for row in here for name in row.subsets or ())
    return tuple(
        Group(
            mechanism=mechanism,
            colour=colour[mechanism],
            rows=tuple(row for row in here if row.mechanism == mechanism),
            difference=_difference(results, here[0], mechanism),
            subset_differences={
                name: difference
                for name in names
                if (difference := _difference(results, here[0], mechanism, name))
            },
        )
        for mechanism in order
        if any(row.mechanism == mechanism for row in here)
    )


def _difference(
    results: Results, first: Result, mechanism: str, subset: str | None = None
) -> Difference | None:
    """The difference over seeds where there are several, else that of the paired samples."""
    paired = None
    task, board, basis = first.task, first.board, basis_of(first)
    metric = f"{subset} accuracy difference" if subset else "accuracy difference"
    for item in results.comparisons:
        if (item.task, item.board, item.mechanism) != (task, board, mechanism):
            continue
        if isinstance(item, SeedSummary) and item.metric == metric and item.ci95:
            return Difference(item.mean, item.ci95, f"{item.n_seeds} seeds")
        if isinstance(item, PairedTest) and item.subset == subset:
            paired = Difference(item.difference, item.ci95, basis)
    return paired
