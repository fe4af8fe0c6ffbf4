"""What the figures say, in sentences: first what they show, then where softmax wins.

A difference in accuracy counts as shown only if its interval excludes zero. Nothing here rests on a
modelled figure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from entrain.deploy.comparisons import BASELINE
from entrain.deploy.report.groups import CONTROL, Difference, Group, Section, samples_of
from entrain.deploy.report.words import count, listed, percent, points, points_range, times
from entrain.deploy.results import Kind, Result

# A cost that is lower by a smaller share than this is called equal.
LEAST_WIN = 0.001


@dataclass(frozen=True)
class Finding:
    """A sentence and the kind of the figures in it."""

    text: str
    kind: Kind


@dataclass(frozen=True)
class _Cost:
    unit: str
    of: Callable[[Result], float | None]


INSTRUCTIONS = _Cost("instructions", lambda row: row.instructions)
COSTS = (
    INSTRUCTIONS,
    _Cost("bytes of flash", lambda row: row.flash_bytes),
    _Cost("bytes of RAM", lambda row: row.ram_bytes),
    _Cost("parameters", lambda row: row.parameters),
)


def shown_by(section: Section) -> list[Finding]:
    """What each mechanism costs and reaches beside softmax, and what the control says."""
    baseline = section.group(BASELINE)
    if baseline is None:
        return []
    found = []
    for group in section.groups:
        if group.mechanism not in (BASELINE, CONTROL):
            found += _beside(group, baseline)
    control = section.group(CONTROL)
    return found + (_control(control, section) if control else [])


def softmax_wins(section: Section) -> list[Finding]:
    """Everything in which softmax is better than a mechanism, down to a thousandth of a cost."""
    baseline = section.group(BASELINE)
    if baseline is None:
        return []
    found = []
    for group in section.groups:
        if group is not baseline:
            found += _accuracy_wins(group) + _cost_wins(group, baseline)
    return found


def _beside(group: Group, baseline: Group) -> list[Finding]:
    found = []
    mine, theirs = (one.mean(INSTRUCTIONS.of) for one in (group, baseline))
    if mine and theirs:
        ratio = times(mine / theirs)
        found.append(
            Finding(f"{group.mechanism} executes {ratio} the instructions of softmax.", "counted")
        )
    if group.difference is not None:
        found.append(_difference(group, group.difference, ""))
    for name, difference in group.subset_differences.items():
        found.append(_difference(group, difference, f" on {name} {samples_of(group.rows[0])}"))
    return found


def _difference(group: Group, difference: Difference, where: str) -> Finding:
    verdict = "a difference" if difference.is_shown else "no difference shown"
    if difference.is_shown and len(group.rows) == 1:
        verdict += " between these two networks, of one seed each"
    return Finding(
        f"{group.mechanism} is {_apart(difference.value)} softmax in accuracy{where} (95 % "
        f"interval over {difference.basis} {points_range(difference.interval)}): {verdict}.",
        "measured",
    )


def _apart(difference: float) -> str:
    """Where an accuracy lies: ``0.3 points above``, ``level with``."""
    size = points(abs(difference)).lstrip("+")
    if size == "0.0":
        return "level with"
    return f"{size} points {'above' if difference > 0 else 'below'}"


def _control(control: Group, section: Section) -> list[Finding]:
    difference = control.difference
    if control.accuracy is None or difference is None:
        return []
    lead = (
        f"The uniform control weighs every position alike and reaches {percent(control.accuracy)}"
    )
    better = _clearly_better(control, section)
    if difference.is_shown and difference.value < 0:
        lesson = "less than softmax: this task needs attention."
    elif better is not None:
        lesson = f"less than {better.mechanism}: this task needs attention, and softmax lacks it."
    else:
        lesson = (
            f"no less than softmax as far as these {samples_of(control.rows[0])} tell. Such a task "
            "may hardly need attention: it shows what a mechanism costs and that it does no harm, "
            "not that it attends better."
        )
    return [Finding(f"{lead}, {lesson}", "measured")]


def _clearly_better(control: Group, section: Section) -> Group | None:
    """The mechanism, if any, whose interval lies furthest above the control's."""
    ceiling = control.accuracy_interval
    floors = [
        (group.accuracy_interval[0], group)
        for group in section.groups
        if group is not control and group.accuracy_interval is not None
    ]
    if ceiling is None or not floors:
        return None
    floor, best = max(floors, key=lambda one: one[0])
    return best if floor > ceiling[1] else None


def _accuracy_wins(group: Group) -> list[Finding]:
    everywhere = {"": group.difference} if group.difference else {}
    parts = {
        f" on {name} {samples_of(group.rows[0])}": one
        for name, one in group.subset_differences.items()
    }
    return [
        _accuracy_win(group, difference, where)
        for where, difference in {**everywhere, **parts}.items()
        if points(difference.value) != "0.0" and difference.value < 0
    ]


def _accuracy_win(group: Group, difference: Difference, where: str) -> Finding:
    doubt = "" if difference.is_shown else "; the interval includes zero, so it may be chance"
    return Finding(
        f"Accuracy{where}: {_apart(-difference.value)} {group.mechanism} (95 % interval "
        f"{points_range((-difference.interval[1], -difference.interval[0]))}{doubt}).",
        "measured",
    )


def _cost_wins(group: Group, baseline: Group) -> list[Finding]:
    wins = []
    for cost in COSTS:
        mine, theirs = group.mean(cost.of), baseline.mean(cost.of)
        if mine is not None and theirs is not None and mine - theirs >= LEAST_WIN * mine:
            saved = f"{100 * (mine - theirs) / mine:.1f} %"
            wins.append(f"{count(mine - theirs)} fewer {cost.unit} ({saved})")
    text = f"Cost: {listed(wins)} than {group.mechanism}."
    return [Finding(text, "counted")] if wins else []
