"""The stage ``compare``: several runs measured on several boards, row by row into results.json."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from entrain.deploy.build import Firmware
from entrain.deploy.comparisons import Predictions
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.environment import environment
from entrain.deploy.errors import EntrainError, concerning
from entrain.deploy.journal import Journal
from entrain.deploy.lowering.artifact import LoweredModel
from entrain.deploy.measure import (
    Reference,
    Samples,
    ask_device,
    check_board,
    check_model,
    classes_of,
    reference,
)
from entrain.deploy.pipeline import Progress, build
from entrain.deploy.result_row import result_row
from entrain.deploy.results import Result, Results
from entrain.deploy.runs import Run
from entrain.deploy.target import Target
from entrain.deploy.tasks import TASKS, Task
from entrain.deploy.tasks.contract import PartT

if TYPE_CHECKING:
    from entrain.models.checkpoint import Checkpoint

# An emulator is a process that keeps one core busy.
EMULATORS_AT_ONCE = 2


@dataclass(frozen=True, eq=False)
class Candidate:
    """A run that is compared.

    Args:
        run: its folder, lowered.
        model: its lowered model.
        checkpoint: its trained network.
        data: the data's short name.
        part: the samples of its task that it is asked.
    """

    run: Run
    model: LoweredModel
    checkpoint: Checkpoint
    data: str
    part: Any

    @property
    def task(self) -> Task[Any, Any, Any]:
        """Its task."""
        return TASKS[self.checkpoint.task]

    @property
    def samples(self) -> Samples:
        """What is asked, without the inputs themselves."""
        task, part = self.task, self.part
        return Samples(
            task.truth(part), task.groups(part), self.checkpoint.labels, task.subsets(part)
        )


@dataclass(frozen=True, eq=False)
class Job:
    """A row to be.

    Args:
        identity: the row as far as it is known: which run, mechanism, data, board.
        candidate: what is asked.
        target: on which device.
        firmware: its image.
        truth: this machine's answers.
    """

    identity: Result
    candidate: Candidate
    target: Target
    firmware: Firmware
    truth: Reference


@dataclass(frozen=True, eq=False)
class Measured:
    """What a comparison came to.

    Args:
        results: as in results.json, which stands where it has rows.
        ended_by: what ended the work early, if anything did; to be raised once the results are
            shown.
    """

    results: Results
    ended_by: EntrainError | KeyboardInterrupt | None


def chosen(part: PartT, count: int | None) -> PartT:
    """So many of the samples, drawn from all alike and the same ones each time; None for all."""
    if count is None or count >= len(part):
        return part
    order = np.random.default_rng(0).permutation(len(part))
    return part.select(np.sort(order[:count]).tolist())


def measure_all(
    candidates: Sequence[Candidate],
    targets: Sequence[Target],
    path: Path,
    progress: Progress,
) -> Measured:
    """Measure every candidate on every target; results.json is written after each.

    Everything is built first, so what does not fit is known at once. What ends the work early (a
    device that is missing or lost, a model that does not fit, Ctrl-C) is returned beside what was
    measured before, incomplete rows among it.

    Args:
        candidates: the runs, lowered.
        targets: the devices.
        path: results.json.
        progress: is told.
    """
    made_with = environment()
    journal = Journal(path, made_with)
    try:
        _measure_in_lanes(
            _jobs(candidates, targets, made_with.versions.get("gcc"), progress), journal, progress
        )
    except EntrainError as error:
        return Measured(journal.write(f"{error.where or 'stopped'}: {error.what}"), error)
    except KeyboardInterrupt as interruption:
        return Measured(journal.write("interrupted"), interruption)
    return Measured(journal.write(None), None)


def _jobs(
    candidates: Sequence[Candidate],
    targets: Sequence[Target],
    toolchain: str | None,
    progress: Progress,
) -> list[Job]:
    """Every row to be, in order: what is built, and then what this machine answers."""
    pairs = [(candidate, target) for candidate in candidates for target in targets]
    images = [build(candidate.run, target.board, progress) for candidate, target in pairs]
    truths = {candidate.run: _reference(candidate, progress) for candidate in candidates}
    return [
        Job(
            identity_of(candidate, target, toolchain),
            candidate,
            target,
            image,
            truths[candidate.run],
        )
        for (candidate, target), image in zip(pairs, images, strict=True)
    ]


def _measure_in_lanes(jobs: Sequence[Job], journal: Journal, progress: Progress) -> None:
    """Do the jobs in order, emulators two at a time; the first failure ends them all."""
    emulated = all(isinstance(job.target.address, QemuAddress) for job in jobs)
    lanes = ThreadPoolExecutor(EMULATORS_AT_ONCE if emulated else 1)
    stop = threading.Event()

    def do(place: int, job: Job) -> None:
        if stop.is_set():
            return
        try:
            _measure(place, job, journal, progress, stop)
        except BaseException:
            stop.set()
            raise

    try:
        rows = [lanes.submit(do, place, job) for place, job in enumerate(jobs)]
        for row in wait(rows, return_when=FIRST_EXCEPTION).done:
            row.result()
    finally:
        stop.set()
        lanes.shutdown()


def _measure(
    place: int, job: Job, journal: Journal, progress: Progress, stop: threading.Event
) -> None:
    """One row, incomplete if the device was lost or the work is to stop.

    The emulator ends with the thread that made it, so the whole row is one thread's.
    """
    candidate, truth, samples = job.candidate, job.truth, job.candidate.samples
    name = f"measure on {job.target.board.name}"
    with (
        concerning(str(job.target.address)),
        progress.stage(candidate.run, name, len(samples)) as step,
    ):
        with connect(job.target.address, job.firmware.image) as client:
            check_board(client, job.target.board)
            check_model(client, candidate.model.name)
            answers = ask_device(
                client, truth.inputs, len(samples.labels), lambda: step(""), stop.is_set
            )
        row = result_row(job.identity, candidate.model, job.firmware, samples, truth, answers)
        n = len(answers.outputs)
        predicted = classes_of(answers.outputs)
        subsets = {name: whole[:n] for name, whole in samples.subsets.items()}
        groups = samples.groups and samples.groups[:n]
        journal.add(place, Predictions(row, samples.truth[:n], predicted, groups, subsets))
        if answers.lost is not None:
            raise answers.lost


def _reference(candidate: Candidate, progress: Progress) -> Reference:
    task, checkpoint = candidate.task, candidate.checkpoint
    with progress.stage(candidate.run, "answer on this machine", len(candidate.part)) as step:
        inputs = task.inputs(candidate.part, checkpoint)
        float_classes = task.answers(checkpoint.build_network(), inputs)
        return reference(
            candidate.run, candidate.model, inputs.numpy(), float_classes, lambda: step("")
        )


def identity_of(candidate: Candidate, target: Target, toolchain: str | None) -> Result:
    """A row that says what is measured where, and nothing yet of what came out."""
    from entrain.models.networks.parameters import count_parameters

    checkpoint = candidate.checkpoint
    attention = checkpoint.config.attention
    settings = attention.settings
    return Result(
        run=candidate.run.name,
        task=checkpoint.task,
        attention=attention.mechanism,
        coupling=attention.coupling,
        d_osc=attention.d_osc if "d_osc" in settings else None,
        p=attention.exponent if "exponent" in settings else None,
        epsilon=attention.epsilon if "epsilon" in settings else None,
        anchors=attention.anchors if "anchors" in settings else None,
        seed=checkpoint.training.seed,
        sample=candidate.task.sample,
        group=candidate.task.group,
        split="test",
        data=candidate.data,
        board=target.board.name,
        device=str(target.address),
        toolchain=toolchain,
        parameters=count_parameters(checkpoint.build_network()),
    )
