"""Runs jobs side by side; every outcome is kept by its worker the moment it is there."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from entrain.deploy.errors import DataError, EntrainError, ToolError
from entrain.models.experiments.cluster import Workers
from entrain.models.experiments.jobs import Job
from entrain.models.experiments.store import Record, Store, difference, record_of

if TYPE_CHECKING:
    from entrain.models.training import EpochReport

# Times in a row that workers may be killed without a single job having ended in between.
PATIENCE = 3


@dataclass(frozen=True)
class Failure:
    """Why a job came to nothing; kind and parts of an error, since they cross processes."""

    what: str
    where: str | None
    remedy: str | None
    exit_code: int
    kind: type[Exception]


@dataclass(frozen=True)
class Ended:
    """A job that is over, with its outcome or with why there is none."""

    job: Job
    outcome: Record | Failure

    def failed_by(self, kind: type[Exception]) -> bool:
        """Whether an error of this kind is why there is no outcome."""
        return isinstance(self.outcome, Failure) and issubclass(self.outcome.kind, kind)


class Stopped(BaseException):
    """Ctrl-C within a job. Training takes a KeyboardInterrupt as its end; this is not one."""


def pending(jobs: Sequence[Job], store: Store) -> list[Job]:
    """The jobs whose outcome is not kept, or depends on other settings than it did.

    Raises:
        ResultsError: a kept outcome is damaged.
    """
    found = ((job, store.find(job)) for job in jobs)
    return [job for job, record in found if record is None or difference(record, job)]


def run_jobs(jobs: Sequence[Job], store: Store, workers: Workers) -> Generator[Ended, None, None]:
    """Run the jobs and yield each as it ends. A failed job does not end the others.

    Except where the first one to end lacks its data: the others, which need it too, are then handed
    out no more, and those that also lack it are not yielded.

    When workers are killed from outside, their jobs are begun again, each where its snapshot is.

    Raises:
        ToolError: workers are killed again and again.
        KeyboardInterrupt: Ctrl-C; what has ended is kept.
    """
    left = {job.name: job for job in jobs}
    for job in jobs:  # what a killed command left says nothing of this one
        store.forget_progress(job)
    deaths = 0
    first, no_data = True, threading.Event()
    while left and not no_data.is_set():
        with workers.open(len(left)) as pool:
            try:
                for ended in _parallel(list(left.values()), store, pool.return_as, no_data):
                    deaths = 0
                    del left[ended.job.name]
                    if no_data.is_set() and ended.failed_by(DataError):
                        continue
                    if first and ended.failed_by(DataError):
                        no_data.set()
                    first = False
                    yield ended
            except Stopped as error:
                raise KeyboardInterrupt from error
            except pool.killed as error:
                deaths += 1
                if deaths == PATIENCE:
                    raise ToolError(
                        f"worker processes were killed {PATIENCE} times in a row",
                        where=f"{len(left)} jobs left, {next(iter(left))} among them",
                        remedy="if memory ran out, use fewer --jobs; "
                        "the same command goes on where this one stopped",
                    ) from error


def _parallel(
    jobs: list[Job], store: Store, return_as: str, stop: threading.Event
) -> Iterator[Ended]:
    """Run the jobs; those that are not handed out yet when ``stop`` is set are left."""
    from joblib import Parallel, delayed

    # Jobs take minutes: each goes out alone, and when a worker is free for it.
    parallel = Parallel(return_as=return_as, batch_size=1, pre_dispatch="n_jobs")
    yield from parallel(delayed(run_job)(job, store) for job in jobs if not stop.is_set())


def run_job(job: Job, store: Store) -> Ended:
    """Measure, and keep the outcome; what goes wrong is told, not raised."""
    from entrain.models.experiments.workload import Place

    began = time.monotonic()
    try:
        with _one_thread(), _stoppable() as stop:
            store.folder.mkdir(parents=True, exist_ok=True)

            def on_epoch(report: EpochReport) -> None:
                store.tell(job, report)
                stop.raise_if_asked()

            place = Place(job.folder, store.snapshot_path(job))
            outcome = job.workload.measure(job.seed, place, on_epoch)
            record = record_of(job, outcome, time.monotonic() - began)
            store.write(record, job)
            store.clear(job)
    except EntrainError as error:
        store.forget_progress(job)
        return Ended(
            job, Failure(error.what, error.where, error.remedy, error.exit_code, type(error))
        )
    except Exception as error:  # whatever it is, the other jobs go on and this one is reported
        store.forget_progress(job)
        return Ended(job, _unexpected(error))
    return Ended(job, record)


def _unexpected(error: Exception) -> Failure:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return Failure(
        f"{type(error).__name__}: {error}",
        f"{last.filename}:{last.lineno}",
        "this is a bug in the workload or a library; the other jobs are not concerned",
        1,
        Exception,  # its own class may be unknown where this is read
    )


@contextmanager
def _one_thread() -> Iterator[None]:
    """Torch on one thread: jobs share the cores among them, and sums keep their order."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class _Stop:
    """Ctrl-C, raised where it comes, and once more after the epoch.

    An exception that is raised while a destructor or a library's callback runs is swallowed there;
    then the one after the epoch ends the job.
    """

    def __init__(self) -> None:
        self._asked = False

    def __call__(self, _number: int, _frame: FrameType | None) -> NoReturn:
        self._asked = True
        raise Stopped

    def raise_if_asked(self) -> None:
        if self._asked:
            raise Stopped


@contextmanager
def _stoppable() -> Iterator[_Stop]:
    """Ctrl-C stops the job at once, instead of ending its training as if that were whole."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
