"""How far an experiment is: a bar of its runs, and a line for each that is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from entrain.deploy.cli.output import Output, error_console
from entrain.deploy.report.words import count, printable, significant
from entrain.models.experiments.jobs import Job
from entrain.models.experiments.runner import Ended, Failure
from entrain.models.experiments.specification import Experiment
from entrain.models.experiments.store import Record, Store

BAR_WIDTH = 20
METRICS_SHOWN = 2
SECONDS_BETWEEN_LOOKS = 0.5


@dataclass
class ShownJobs:
    """The runs of one command, as they go.

    Args:
        experiment: whose they are.
        jobs: those to be done.
        store: where workers say how far they are.
        say: says a line.
    """

    experiment: Experiment
    jobs: Sequence[Job]
    store: Store
    say: Callable[[str], None]
    began: float = field(default_factory=time.monotonic)
    began_at: float = field(default_factory=time.time)
    ended: set[str] = field(default_factory=set)
    latest: str = ""

    def end(self, one: Ended) -> None:
        """A run is over."""
        self.ended.add(one.job.name)
        who = f"{one.job.variant}, seed {one.job.seed}"
        if isinstance(one.outcome, Failure):
            where = f" ({one.outcome.where})" if one.outcome.where else ""
            self.say(f"{who} failed: {one.outcome.what}{where}")
        else:
            figures = self._figures(one.outcome)
            self.say(f"{who}: {figures}, {one.outcome.seconds:.1f} s")

    @property
    def finished(self) -> int:
        """Runs that are over, those too whose outcome is kept but has not come back yet."""
        kept = sum(self._is_kept(job) for job in self.jobs if job.name not in self.ended)
        return len(self.ended) + kept

    def _is_kept(self, job: Job) -> bool:
        try:
            return self.store.record_path(job).stat().st_mtime >= self.began_at
        except OSError:
            return False

    def look(self) -> tuple[float, str]:
        """How many runs' worth is done, and words: running, left, the last epoch, the time left."""
        under_way = [
            (job, progress)
            for job in self.jobs
            if job.name not in self.ended and (progress := self.store.progress(job)) is not None
        ]
        shares = sum(progress.epoch / max(progress.epochs, 1) for _, progress in under_way)
        done = self.finished + shares
        for job, progress in under_way:
            words = f"epoch {progress.epoch}/{progress.epochs}, loss {progress.loss:.3g}"
            remark = f"{job.variant} seed {job.seed}: {words}"
            if remark != self.latest:
                self.latest = remark
        waiting = len(self.jobs) - self.finished - len(under_way)
        return done, (
            f"{len(under_way)} running, {count(waiting)} waiting{self._expected(done)}"
            f"{'; ' + self.latest if self.latest else ''}"
        )

    def _expected(self, done: float) -> str:
        if done <= 0:
            return ""
        seconds = (time.monotonic() - self.began) * (len(self.jobs) - done) / done
        return f", about {duration(seconds)} left"

    def _figures(self, record: Record) -> str:
        shown = [
            f"{metric.title} {significant(record.metrics[name])} {metric.unit}".rstrip()
            for name, metric in self.experiment.metrics.items()
            if name in record.metrics
        ]
        more = ["..."] if len(shown) > METRICS_SHOWN else []
        return ", ".join(shown[:METRICS_SHOWN] + more) or "done"


def duration(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def shown_jobs(
    out: Output, experiment: Experiment, jobs: Sequence[Job], store: Store
) -> Iterator[ShownJobs]:
    """A bar and lines on stderr while the block runs; nothing with ``--quiet``."""
    console = error_console()
    bars = Progress(
        BarColumn(bar_width=BAR_WIDTH),
        TextColumn("{task.fields[whole]}/{task.total:.0f}", style="green"),
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
        console=console,
        transient=True,
        redirect_stdout=False,
        expand=True,
        disable=out.quiet or not console.is_terminal,
    )
    shown = ShownJobs(
        experiment,
        jobs,
        store,
        lambda line: (
            None if out.quiet else console.print(printable(line), markup=False, soft_wrap=True)
        ),
    )
    bar = bars.add_task("", total=len(jobs), whole=0)
    over = threading.Event()

    def look() -> None:
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            done, words = shown.look()
            bars.update(bar, completed=done, whole=shown.finished, description=printable(words))

    looking = threading.Thread(target=look, daemon=True)
    with bars:
        if not bars.disable:
            looking.start()
        try:
            yield shown
        finally:
            over.set()
            if looking.is_alive():
                looking.join()
