"""Mechanisms side by side, as Markdown: the means over seeds of what results.json holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from entrain.deploy.report.groups import subset_of
from entrain.deploy.report.words import DASH, count, percent, printable, significant, times
from entrain.deploy.results import Accuracy, Figure, Result, Results

Group = Sequence[Result]

DEVICE = "device (measured)"


def summary_markdown(results: Results) -> str:
    """One line for each mechanism on each board, over its complete rows.

    Accuracies, instructions, time and energy are means over the seeds; agreement with onnxruntime
    is the worst of them; mismatches are added up.
    """
    columns = _columns(results)
    lines = [
        [title for title, _ in columns],
        ["---" if title in ("attention", "board") else "---:" for title, _ in columns],
        *([printable(cell(group)) for _, cell in columns] for group in groups(results)),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def groups(results: Results) -> list[list[Result]]:
    """The complete rows by (task, mechanism, board), in the order in which they first appear."""
    found: dict[tuple[str, str, str], list[Result]] = {}
    for row in results.results:
        if row.complete:
            found.setdefault((row.task, row.mechanism, row.board), []).append(row)
    return list(found.values())


def _columns(results: Results) -> tuple[tuple[str, Callable[[Group], str]], ...]:
    """All columns; those of the subsets that there are stand behind the accuracy on the device."""
    names = dict.fromkeys(name for row in results.results for name in row.subsets or ())
    subsets = tuple((f"{name} (measured)", _subset(name)) for name in names)
    place = [title for title, _ in COLUMNS].index(DEVICE) + 1
    return (*COLUMNS[:place], *subsets, *COLUMNS[place:])


def _subset(name: str) -> Callable[[Group], str]:
    def cell(group: Group) -> str:
        values = [one.device for row in group if (one := subset_of(row, name))]
        known = [value for value in values if value is not None]
        return percent(mean(known)) if known else DASH

    return cell


def _accuracy(pick: Callable[[Accuracy], float | None]) -> Callable[[Group], str]:
    def cell(group: Group) -> str:
        values = [pick(row.accuracy) for row in group if row.accuracy is not None]
        known = [value for value in values if value is not None]
        return percent(mean(known)) if known else DASH

    return cell


def _mean(pick: Callable[[Result], int | None]) -> Callable[[Group], str]:
    def cell(group: Group) -> str:
        known = [value for row in group if (value := pick(row)) is not None]
        return count(mean(known)) if known else DASH

    return cell


def _core(group: Group) -> str:
    """Instructions of the attention cores, and their share of all."""
    shares = [share for row in group if (share := row.core_share) is not None]
    if not shares:
        return DASH
    return f"{_mean(lambda row: row.core_instructions)(group)} ({percent(mean(shares))})"


def _gain(group: Group) -> str:
    gains = [gain for row in group if (gain := row.amdahl_bound) is not None]
    return times(mean(gains)) if gains else DASH


def _total(group: Group) -> str:
    asked = sum(row.accuracy.n for row in group if row.accuracy is not None)
    return f"{sum(row.mismatches or 0 for row in group)} of {asked:,}"


def _agreement(group: Group) -> str:
    known = [row.onnxruntime_agreement for row in group if row.onnxruntime_agreement is not None]
    return f"{100 * min(known):.2f} %" if known else DASH


def _figure(pick: Callable[[Result], Figure | None]) -> Callable[[Group], str]:
    def cell(group: Group) -> str:
        known = [figure for row in group if (figure := pick(row)) is not None]
        if not known:
            return DASH
        value = significant(mean(figure.value for figure in known))
        lows = [figure.low for figure in known if figure.low is not None]
        highs = [figure.high for figure in known if figure.high is not None]
        if lows and highs:
            value += f" ({significant(min(lows))}{DASH}{significant(max(highs))})"
        first = known[0]
        at = [f"{first.mhz:g} MHz"] if first.mhz is not None else []
        at += [f"{first.volts:g} V"] if first.volts is not None else []
        return f"{value} at {', '.join(at)}" if at else value

    return cell


# Each column's title and what stands under it.
COLUMNS: tuple[tuple[str, Callable[[Group], str]], ...] = (
    ("attention", lambda group: group[0].mechanism),
    ("board", lambda group: group[0].board),
    ("seeds", lambda group: str(len(group))),
    ("float", _accuracy(lambda accuracy: accuracy.float32)),
    (DEVICE, _accuracy(lambda accuracy: accuracy.device)),
    ("balanced", _accuracy(lambda accuracy: accuracy.balanced)),
    ("as onnxruntime", _agreement),
    ("mismatches", _total),
    ("parameters", _mean(lambda row: row.parameters)),
    ("multiply-adds", _mean(lambda row: row.macs)),
    ("instructions (counted)", _mean(lambda row: row.instructions)),
    ("attention core (counted)", _core),
    ("if the core cost nothing (counted)", _gain),
    ("ms (modelled)", _figure(lambda row: row.latency_ms)),
    ("µJ (modelled)", _figure(lambda row: row.energy_uj)),
)
