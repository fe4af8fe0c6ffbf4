"""The geometry of the charts: every position a percentage, so that they fit any width."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from entrain.deploy.report.groups import Group, Section
from entrain.deploy.report.words import count, memory_size, percent, percent_range
from entrain.deploy.results import Interval, Result

# Instructions by layer name, by mechanism.
Costs = dict[str, dict[str, int]]

# A layer below this share of every mechanism's instructions is drawn together with its like.
SMALL_LAYER = 0.005
# Steps of the accuracy axis, as fractions, and the most ticks it may have.
TICK_STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
MOST_TICKS = 6


@dataclass(frozen=True)
class Dot:
    """A point with its interval, in per cent of the axis."""

    label: str
    colour: int
    at: float
    low: float
    high: float
    text: str
    detail: str


@dataclass(frozen=True)
class Tick:
    """A mark on the axis, in per cent of it."""

    at: float
    text: str


@dataclass(frozen=True)
class DotChart:
    """Points with whiskers over one axis; ``unit`` is what is counted, such as clips."""

    dots: tuple[Dot, ...]
    ticks: tuple[Tick, ...]
    unit: str


@dataclass(frozen=True)
class Bar:
    """A bar, its width in per cent of the longest (or of the capacity)."""

    label: str
    colour: int
    width: float
    text: str


@dataclass(frozen=True)
class BarGroup:
    """Bars of one layer, or of one memory, a mechanism each."""

    name: str
    detail: str
    bars: tuple[Bar, ...]


def accuracy_chart(section: Section) -> DotChart | None:
    """Device accuracy with 95 % intervals; None where none was measured."""
    return _dot_chart(
        [(group, group.accuracy, group.accuracy_interval) for group in section.groups],
        section.samples,
    )


def subset_charts(section: Section) -> dict[str, DotChart]:
    """The same for every subset that was measured, by its name."""
    charts = {}
    for name in section.subsets:
        points = [
            (group, group.subset_accuracy(name), group.subset_interval(name))
            for group in section.groups
        ]
        chart = _dot_chart(points, f"{name} {section.samples}")
        if chart is not None:
            charts[name] = chart
    return charts


def _dot_chart(
    points: list[tuple[Group, float | None, Interval | None]], unit: str
) -> DotChart | None:
    found = [
        (group, value, interval or (value, value))
        for group, value, interval in points
        if value is not None
    ]
    if not found:
        return None
    start, end, step = _axis([end for _, _, interval in found for end in interval])
    span = end - start
    dots = tuple(
        Dot(
            label=group.mechanism,
            colour=group.colour,
            at=_share(value - start, span),
            low=_share(interval[0] - start, span),
            high=_share(interval[1] - start, span),
            text=percent(value),
            detail=percent_range(interval),
        )
        for group, value, interval in found
    )
    marks = [start + step * index for index in range(round(span / step) + 1)]
    ticks = tuple(Tick(_share(mark - start, span), f"{100 * mark:g}") for mark in marks)
    return DotChart(dots, ticks, unit)


def layer_chart(section: Section) -> list[BarGroup]:
    """Instructions per layer, a bar a mechanism (its first seed's), in the order of the network.

    Small layers are drawn together, and so is what runs outside the layers: nothing is left out.
    """
    costs = {group.mechanism: _layer_costs(group.rows[0]) for group in section.groups}
    costs = {mechanism: cost for mechanism, cost in costs.items() if cost}
    if not costs:
        return []
    names, shown = _with_small_together(costs)
    longest = max(value for cost in shown.values() for value in cost.values())
    # as the first mechanism calls it: the baseline
    operators = {layer.name: layer.op for row in section.rows[::-1] for layer in row.layers}
    return [
        BarGroup(
            name,
            operators.get(name, ""),
            tuple(
                Bar(group.mechanism, group.colour, _share(cost[name], longest), count(cost[name]))
                for group in section.groups
                if name in (cost := shown.get(group.mechanism, {}))
            ),
        )
        for name in names
    ]


def memory_chart(section: Section) -> list[BarGroup]:
    """Flash and RAM as shares of what the board has, a bar a mechanism (its first seed's)."""
    first = section.rows[0]
    kinds = (
        _memory(section, "flash", lambda row: row.flash_bytes, first.board_flash_bytes),
        _memory(section, "RAM", lambda row: row.ram_bytes, first.board_ram_bytes),
        _memory(section, "arena, in the RAM", lambda row: row.arena_bytes, first.board_ram_bytes),
    )
    return [group for group in kinds if group.bars]


def _memory(
    section: Section, name: str, of: Callable[[Result], int | None], capacity: int | None
) -> BarGroup:
    used = [(group, of(group.rows[0])) for group in section.groups]
    known = [(group, size) for group, size in used if size is not None]
    longest = capacity or max((size for _, size in known), default=1)
    return BarGroup(
        name,
        f"of {memory_size(capacity)}" if capacity else "the board's size is not known",
        tuple(
            Bar(group.mechanism, group.colour, _share(size, longest), _used(size, capacity))
            for group, size in known
        ),
    )


def _used(size: int, capacity: int | None) -> str:
    return f"{memory_size(size)} ({percent(size / capacity)})" if capacity else memory_size(size)


def _layer_costs(row: Result) -> dict[str, int]:
    """Instructions by layer name, and what runs outside the layers; empty if none were counted."""
    counted = [layer for layer in row.layers if layer.instructions is not None]
    costs: dict[str, int] = {}
    for layer in counted:
        costs[layer.name] = costs.get(layer.name, 0) + (layer.instructions or 0)
    outside = (row.instructions or 0) - sum(costs.values())
    if costs and outside > 0:
        costs["outside the layers"] = outside
    return costs


def _with_small_together(costs: Costs) -> tuple[list[str], Costs]:
    """The names to draw and what each costs, layers small in every mechanism summed up as one."""
    names = merged([list(cost) for cost in costs.values()])
    large = [
        name
        for name in names
        if any(
            cost.get(name, 0) >= SMALL_LAYER * sum(cost.values()) and cost.get(name, 0) > 0
            for cost in costs.values()
        )
    ]
    shown = {
        mechanism: {name: value for name, value in cost.items() if name in large}
        for mechanism, cost in costs.items()
    }
    small = len(names) - len(large)
    if small == 0:
        return names, shown
    rest = f"{small} smaller"
    for mechanism, cost in shown.items():
        cost[rest] = sum(costs[mechanism].values()) - sum(cost.values())
    return [*large, rest], shown


def merged(lists: list[list[str]]) -> list[str]:
    """All the names, each list's in its own order: a new one goes in before what follows it."""
    found: list[str] = []
    for names in lists:
        place = len(found)
        for name in reversed(names):
            if name in found:
                place = found.index(name)
            else:
                found.insert(place, name)
    return found


def _axis(values: list[float]) -> tuple[float, float, float]:
    """Start, end and step of an axis of accuracies that holds the values."""
    for step in TICK_STEPS:
        start = min(math.floor(min(values) / step) * step, 1 - step)
        end = max(math.ceil(max(values) / step) * step, start + step)
        if round((end - start) / step) < MOST_TICKS:
            return start, end, step
    return 0.0, 1.0, TICK_STEPS[-1]


def _share(part: float, whole: float) -> float:
    return round(min(100.0, max(0.0, 100 * part / whole)), 3)
