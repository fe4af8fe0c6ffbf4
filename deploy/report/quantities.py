"""The table of a section: a row a quantity and kind, a column a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from entrain.deploy.comparisons import BASELINE
from entrain.deploy.report.groups import Difference, Group, Section, subset_of
from entrain.deploy.report.words import (
    DASH,
    bounds,
    count,
    memory_size,
    percent,
    percent_range,
    points,
    points_range,
    significant,
    times,
)
from entrain.deploy.results import Accuracy, Figure, Interval, Kind, Result

KINDS: tuple[Kind, ...] = ("measured", "counted", "modelled")


@dataclass(frozen=True)
class Cell:
    """A figure as it is shown, with what stands smaller behind it."""

    text: str
    detail: str = ""


@dataclass(frozen=True)
class QuantityRow:
    """One quantity of one kind over the mechanisms of a section."""

    name: str
    kind: Kind
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class TileFigure:
    """A figure on a tile."""

    name: str
    kind: Kind
    cell: Cell


@dataclass(frozen=True)
class Tile:
    """One mechanism's headline figures."""

    group: Group
    figures: tuple[TileFigure, ...]


ABSENT = Cell(DASH)

ACCURACY = "Accuracy on the device"
DIFFERENCE = "Accuracy less softmax's, points"
SUBSET = "Accuracy on the device, "
INSTRUCTIONS = "Instructions, one inference"
RELATIVE = "Instructions over softmax's"
HEADLINES = (ACCURACY, DIFFERENCE, INSTRUCTIONS, RELATIVE)


def quantity_rows(section: Section) -> list[QuantityRow]:
    """Every quantity that at least one mechanism has. Over several seeds, means."""
    rows = [
        QuantityRow(name, kind, tuple(cell(group) for group in section.groups))
        for name, kind, cell in (*_accuracies(section), *_counts(section), *_figures())
    ]
    return [row for row in rows if any(cell != ABSENT for cell in row.cells)]


def tiles(section: Section) -> list[Tile]:
    """The headline: accuracy and instructions of each mechanism, and both beside softmax's.

    The accuracy on subsets is part of it.
    """
    headlines = {*HEADLINES, *(f"{SUBSET}{name} {section.samples}" for name in section.subsets)}
    rows = [row for row in quantity_rows(section) if row.name in headlines]
    return [
        Tile(
            group,
            tuple(
                TileFigure(row.name, row.kind, row.cells[index])
                for row in rows
                if row.cells[index] != ABSENT
            ),
        )
        for index, group in enumerate(section.groups)
    ]


Described = tuple[str, Kind, Callable[[Group], Cell]]


def _accuracies(section: Section) -> list[Described]:
    samples = section.samples.capitalize()
    return [
        ("Accuracy, float network", "measured", _fraction(lambda found: found.float32)),
        ("Accuracy, integers on this machine", "measured", _fraction(lambda a: a.int8_host)),
        (ACCURACY, "measured", _device_accuracy),
        ("Balanced accuracy on the device", "measured", _fraction(lambda found: found.balanced)),
        (DIFFERENCE, "measured", _difference),
        *(row for name in section.subsets for row in _of_subset(section, name)),
        (samples, "counted", _number(lambda row: row.accuracy.n if row.accuracy else None)),
        (
            f"{samples} with any byte unlike the host's",
            "counted",
            _number(lambda row: row.mismatches),
        ),
        ("Same top class as onnxruntime", "measured", _agreement),
    ]


def _of_subset(section: Section, name: str) -> list[Described]:
    """How a subset went, beside its size."""
    samples = f"{name} {section.samples}"

    def floats(row: Result) -> float | None:
        return found.float32 if (found := subset_of(row, name)) else None

    def device(group: Group) -> Cell:
        value, interval = group.subset_accuracy(name), group.subset_interval(name)
        return ABSENT if value is None else _accuracy_cell(value, interval, group.basis)

    def floating(group: Group) -> Cell:
        mean = group.mean(floats)
        return ABSENT if mean is None else Cell(percent(mean))

    def less(group: Group) -> Cell:
        return _difference_cell(group.subset_differences.get(name))

    def size(row: Result) -> float | None:
        return found.n if (found := subset_of(row, name)) else None

    return [
        (f"{SUBSET}{samples}, float network", "measured", floating),
        (f"{SUBSET}{samples}", "measured", device),
        (f"The same less softmax's, points: {samples}", "measured", less),
        (samples.capitalize(), "counted", _number(size)),
    ]


def _counts(section: Section) -> list[Described]:
    softmax = section.group(BASELINE)
    baseline = softmax.mean(lambda row: row.instructions) if softmax else None

    def relative(group: Group) -> Cell:
        own = group.mean(lambda row: row.instructions)
        if group is softmax or not own or not baseline:
            return ABSENT
        return Cell(times(own / baseline))

    return [
        (INSTRUCTIONS, "counted", _number(lambda row: row.instructions)),
        (RELATIVE, "counted", relative),
        ("Instructions, attention core", "counted", _number(lambda row: row.core_instructions)),
        ("The core's share of all", "counted", _share(lambda row: row.core_share)),
        ("If the core cost nothing (Amdahl)", "counted", _gain),
        ("Multiply-adds", "counted", _number(lambda row: row.macs)),
        ("Parameters", "counted", _number(lambda row: row.parameters)),
        ("Flash", "counted", _size(lambda row: row.flash_bytes)),
        ("RAM", "counted", _size(lambda row: row.ram_bytes)),
        ("Arena, part of the RAM", "counted", _size(lambda row: row.arena_bytes)),
        ("Worst stack", "counted", _size(lambda row: row.stack_bytes)),
    ]


def _figures() -> list[Described]:
    return [
        *(
            ("Cycles, millions", kind, _figure(lambda r: r.cycles, kind, _millions))
            for kind in KINDS
        ),
        *(("Latency, ms", kind, _figure(lambda r: r.latency_ms, kind)) for kind in KINDS),
        *(
            ("Energy, \N{MICRO SIGN}J", kind, _figure(lambda r: r.energy_uj, kind))
            for kind in KINDS
        ),
    ]


def _millions(number: float) -> str:
    return significant(number / 1e6)


def _device_accuracy(group: Group) -> Cell:
    if group.accuracy is None:
        return ABSENT
    return _accuracy_cell(group.accuracy, group.accuracy_interval, group.basis)


def _accuracy_cell(value: float, interval: Interval | None, basis: str) -> Cell:
    detail = f"{percent_range(interval)} over {basis}" if interval else ""
    return Cell(percent(value), detail)


def _difference(group: Group) -> Cell:
    return _difference_cell(group.difference)


def _difference_cell(found: Difference | None) -> Cell:
    if found is None:
        return ABSENT
    return Cell(points(found.value), f"{points_range(found.interval)} over {found.basis}")


def _agreement(group: Group) -> Cell:
    mean = group.mean(lambda row: row.onnxruntime_agreement)
    return ABSENT if mean is None else Cell(percent(mean))


def _gain(group: Group) -> Cell:
    mean = group.mean(lambda row: row.amdahl_bound)
    return ABSENT if mean is None else Cell(times(mean), "fewer instructions")


def _fraction(of: Callable[[Accuracy], float | None]) -> Callable[[Group], Cell]:
    return _share(lambda row: of(row.accuracy) if row.accuracy else None)


def _share(of: Callable[[Result], float | None]) -> Callable[[Group], Cell]:
    def cell(group: Group) -> Cell:
        mean = group.mean(of)
        return ABSENT if mean is None else Cell(percent(mean))

    return cell


def _number(of: Callable[[Result], float | None]) -> Callable[[Group], Cell]:
    def cell(group: Group) -> Cell:
        mean = group.mean(of)
        return ABSENT if mean is None else Cell(count(mean))

    return cell


def _size(of: Callable[[Result], float | None]) -> Callable[[Group], Cell]:
    def cell(group: Group) -> Cell:
        mean = group.mean(of)
        return ABSENT if mean is None else Cell(memory_size(mean))

    return cell


def _figure(
    of: Callable[[Result], Figure | None],
    kind: Kind,
    shown: Callable[[float], str] = significant,
) -> Callable[[Group], Cell]:
    """The figure of that kind of the group's first row; seeds hardly change a cost."""

    def cell(group: Group) -> Cell:
        figure = of(group.rows[0])
        if figure is None or figure.kind != kind:
            return ABSENT
        conditions = [
            bounds(figure, shown),
            f"{figure.volts:g} V" if figure.volts else "",
            f"{figure.mhz:g} MHz" if figure.mhz else "",
        ]
        return Cell(shown(figure.value), ", ".join(part for part in conditions if part))

    return cell
