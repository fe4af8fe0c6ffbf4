"""How far long work is: a live bar for each stage under way, a plain line for each that is over.

The bars show in a terminal only; the lines stay, in a pipe too. ``--quiet`` silences both. A run's
lines stand in its log.txt as well, with the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from entrain.deploy.cli.output import Output, error_console
from entrain.deploy.report.words import printable
from entrain.deploy.runs import Run

if TYPE_CHECKING:
    from entrain.deploy.pipeline import Step

BAR_WIDTH = 20
REFRESHES_PER_SECOND = 4


class _Count(ProgressColumn):
    """Steps done of all of them, where there is more than one."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.completed:.0f}/{task.total:.0f}" if task.total else "", style="green")


class _Words(ProgressColumn):
    """What the stage does, its last remark, and whose it is; cut to what the terminal holds."""

    def render(self, task: Task) -> Text:
        words = Text(task.description)
        words.append(f"  {task.fields['remark']}" if task.fields["remark"] else "", style="dim")
        return words.append(f"  {task.fields['whose']}" if task.fields["whose"] else "")


class Work:
    """One piece of long work under way.

    Args:
        bars: where its bar stands.
        what: what it does.
        whose: the run's name, or nothing.
        total: how many steps it takes; None where nobody knows.
    """

    def __init__(self, bars: Progress, what: str, whose: str, total: int | None) -> None:
        self._bars, self._what, self._whose, self._total = bars, what, whose, total
        self._done = 0
        self._remark = ""
        self._began = time.monotonic()
        self._bar = bars.add_task(what, total=None, remark="", whose=whose)
        self.reach(0, total)

    def step(self, remark: str) -> None:
        """One step is done."""
        self.reach(self._done + 1, self._total, remark)

    def reach(self, done: int, total: int | None, remark: str = "") -> None:
        """So much is done of so much."""
        self._done, self._total = done, total
        self._remark = printable(remark)
        shown = total if total is not None and total > 1 else None  # one step measures no time
        self._bars.update(self._bar, completed=done, total=shown, remark=self._remark)

    def end(self, *, stopped: bool) -> str:
        """Take the bar away; what is left to say, as a line."""
        self._bars.remove_task(self._bar)
        is_whole = self._total is None or self._done >= self._total
        outcome = f"{self._what} stopped" if stopped or not is_whole else self._what
        seconds = f"{time.monotonic() - self._began:.1f} s"
        if self._total is not None and self._total > 1:
            seconds = f"{self._done}/{self._total} in {seconds}"
        said = ", ".join(part for part in (outcome, seconds, self._remark) if part)
        return f"{self._whose}: {said}" if self._whose else said


@dataclass(frozen=True)
class Stages:
    """Bars and lines of a command's stages; they may run at the same time, in several threads.

    Args:
        bars: the bars.
        say: says a line, or nothing with ``--quiet``.
    """

    bars: Progress
    say: Callable[[str], None]

    @contextmanager
    def stage(self, run: Run, name: str, steps: int) -> Iterator[Step]:
        """A stage of a run; as ``entrain.deploy.pipeline.Progress``."""
        work = Work(self.bars, name, run.name, steps)
        with _told(work, self.say, partial(_log, run)):
            yield work.step

    @contextmanager
    def work(self, what: str) -> Iterator[Work]:
        """Work that belongs to no run, of a length that it learns as it goes."""
        work = Work(self.bars, what, "", None)
        with _told(work, self.say):
            yield work


@contextmanager
def _told(work: Work, *listeners: Callable[[str], None]) -> Iterator[None]:
    """Tell how the work ended when the block does, well or badly."""
    stopped = True
    try:
        yield
        stopped = False
    finally:
        line = work.end(stopped=stopped)
        for tell in listeners:
            tell(line)


@contextmanager
def shown_stages(out: Output) -> Iterator[Stages]:
    """Bars and lines on stderr while the block runs."""
    console = error_console()
    bars = Progress(
        BarColumn(bar_width=BAR_WIDTH),
        _Count(),
        TimeRemainingColumn(),
        _Words(table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
        console=console,
        refresh_per_second=REFRESHES_PER_SECOND,
        transient=True,
        redirect_stdout=False,  # the result is never printed among the bars
        expand=True,
        disable=out.quiet or not console.is_terminal,
    )
    with bars:
        yield Stages(bars, _nothing if out.quiet else lambda line: _line(console, line))


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)


def _nothing(_line: str) -> None:
    """What ``--quiet`` says."""


def _log(run: Run, line: str) -> None:
    """Add a line to the run's log.txt; where that cannot be written, the work goes on."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with suppress(OSError), run.log.open("a", encoding="utf-8") as log:
        log.write(f"{now} {line}\n")
