"""Whether all implementations of the blocks answer the same: vectors, differences, the first one.

The reference is the specification (:mod:`entrain.fpga.reference`); the others are compared with it
to the bit (:mod:`entrain.fpga.verification.implementations`). What is compiled is kept, so a second
run costs only the vectors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from entrain.deploy.errors import EntrainError, ToolError, UsageError
from entrain.fpga.dynamics import Dynamics
from entrain.fpga.progress import Told, tell_nobody
from entrain.fpga.simulators.verilator import verilated_runtime
from entrain.fpga.verification import vectors
from entrain.fpga.verification.implementations import (
    IMPLEMENTATIONS,
    SAMPLED,
    WHOLE,
    Answers,
    reference,
)
from entrain.fpga.verification.vectors import (
    ATTENTION_SHAPES,
    CORE_SHAPES,
    CoreTrial,
    Group,
    Shape,
    Trial,
)

SAMPLE = 500  # vectors that go to Icarus too, of all blocks together


@dataclass(frozen=True)
class Subject:
    """A block to verify.

    Attributes:
        groups: makes its trials, of so many vectors and a seed.
        share: of all vectors.
    """

    groups: Callable[[int, int, tuple[Shape, ...]], list[Group]]
    share: float


def _core(dynamics: Dynamics | None) -> Callable[[int, int, tuple[Shape, ...]], list[Group]]:
    return lambda count, seed, shapes: vectors.core_groups(
        count, seed, dynamics=dynamics, shapes=shapes
    )


def _attention(make: vectors.Maker) -> Callable[[int, int, tuple[Shape, ...]], list[Group]]:
    return lambda count, seed, shapes: vectors.attention_groups(
        count, seed, make=make, shapes=shapes
    )


# One line a block; the first has what whole sequences of the others leave.
SUBJECTS: dict[str, Subject] = {
    "settle": Subject(_core(None), 0.25),
    "settle by dynamics": Subject(_core(Dynamics()), 0.15),
    "oscillator relu": Subject(_attention(vectors.oscillators("relu")), 0.2),
    "oscillator separable": Subject(_attention(vectors.oscillators("separable")), 0.2),
    "softmax": Subject(_attention(vectors.softmaxes), 0.2),
}


@dataclass(frozen=True)
class Difference:
    """The first vector of a trial that an implementation answers in another way.

    Attributes:
        trial: its name.
        vector: its number there.
        what: the answer and the element that differ.
        expected: by the reference.
        found: by the implementation.
        inputs: what went in.
    """

    trial: str
    vector: int
    what: str
    expected: int
    found: int
    inputs: str

    def __str__(self) -> str:
        return (
            f"{self.trial}: vector {self.vector}: {self.what} is {self.found}, "
            f"expected {self.expected}; {self.inputs}"
        )


@dataclass(frozen=True)
class Outcome:
    """What came of a block in one implementation.

    Attributes:
        block: a name of ``SUBJECTS``.
        implementation: a name of ``IMPLEMENTATIONS``.
        vectors: compared.
        differences: vectors that differ.
        first: the first of them.
    """

    block: str
    implementation: str
    vectors: int
    differences: int
    first: Difference | None


@dataclass(frozen=True)
class Verification:
    """What came of all.

    Attributes:
        vectors: that every implementation was given.
        outcomes: by block and implementation.
    """

    vectors: int
    outcomes: tuple[Outcome, ...]

    @property
    def differences(self) -> int:
        """Vectors that differ, in all implementations together."""
        return sum(outcome.differences for outcome in self.outcomes)


def verify(
    folder: Path,
    *,
    count: int,
    blocks: Sequence[str] | None = None,
    seed: int = 0,
    sample: int = SAMPLE,
    shapes: tuple[Shape, ...] | None = None,
    workers: int | None = None,
    told: Told = tell_nobody,
) -> Verification:
    """Compare all implementations of blocks on so many vectors.

    Args:
        folder: keeps what is compiled.
        count: of vectors, of all blocks together.
        blocks: names of ``SUBJECTS``; None: all.
        seed: of everything random.
        sample: vectors that go to Icarus too, not more than there are.
        shapes: of the trials; None: the usual ones.
        workers: processes; None: as many as there are cores.
        told: hears how far it is.

    Raises:
        UsageError: an unknown block, fewer vectors than blocks, or the folder cannot be written.
        ToolError: a tool is missing or failed, or a simulated block did not answer.
    """
    tasks = _tasks(_names(blocks), count, seed, shapes, sample)
    verilated_runtime(folder)  # before workers make it twice
    outcomes: list[Outcome] = []
    told(0, len(tasks), "")
    for done, found in enumerate(_found(tasks, folder, workers), 1):
        if isinstance(found, _Failure):
            raise ToolError(found.what, where=found.where, remedy=found.remedy)
        outcomes += found
        told(done, len(tasks), found[0].block)
    return Verification(sum(task.vectors for task in tasks if not task.sample), _merged(outcomes))


@dataclass(frozen=True, eq=False)
class _Task:
    """Trials of one shape, for some implementations."""

    block: str
    trials: Group
    implementations: tuple[str, ...]
    sample: bool = False

    @property
    def vectors(self) -> int:
        return sum(trial.vectors for trial in self.trials)


@dataclass(frozen=True)
class _Failure:
    """An error, in a form that crosses from one process to another."""

    what: str
    where: str | None
    remedy: str | None


def _found(
    tasks: list[_Task], folder: Path, workers: int | None
) -> Iterator[list[Outcome] | _Failure]:
    """What came of each, in any order; in this process if there is but one worker.

    Raises:
        ToolError: a process died.
    """
    import joblib
    from joblib.externals.loky.process_executor import BrokenProcessPool

    run = joblib.Parallel(n_jobs=workers or joblib.cpu_count(), return_as="generator_unordered")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*have been cancelled")  # after a failure
        try:
            yield from run(joblib.delayed(_attempted)(task, folder) for task in tasks)
        except BrokenProcessPool as error:
            raise ToolError(
                "a process that compared the blocks died",
                remedy="look whether the memory suffices; XLS dies of some sources",
            ) from error


def _names(blocks: Sequence[str] | None) -> list[str]:
    chosen = list(SUBJECTS) if blocks is None else list(blocks)
    unknown = [name for name in chosen if name not in SUBJECTS]
    if unknown or not chosen:
        raise UsageError(
            f"no block is called {unknown[0]!r}" if unknown else "no block",
            remedy=f"one of: {', '.join(SUBJECTS)}",
        )
    return chosen


def _tasks(
    names: list[str], count: int, seed: int, shapes: tuple[Shape, ...] | None, sample: int
) -> list[_Task]:
    whole = sum(SUBJECTS[name].share for name in names)
    tasks: list[_Task] = []
    left = count
    for name in reversed(names):  # the first has the rest
        subject = SUBJECTS[name]
        own = left if name == names[0] else int(count * subject.share / whole)
        usual = CORE_SHAPES if name.startswith("settle") else ATTENTION_SHAPES
        groups = subject.groups(own, seed, shapes or usual)
        made = [_Task(name, group, WHOLE) for group in groups]
        left -= sum(task.vectors for task in made)
        tasks += made
    return [*tasks, *_sampled(tasks, sample)]


def _sampled(tasks: list[_Task], count: int) -> list[_Task]:
    """Some vectors of each block's first two trials, without and with pauses, for Icarus."""
    first = {task.block: task for task in reversed(tasks)}
    sampled = []
    for left, (name, task) in zip(range(len(first), 0, -1), first.items(), strict=True):
        trials = _cut(task.trials[:2], -(-count // left))
        sampled.append(_Task(name, trials, (SAMPLED,), sample=True))
        count -= sampled[-1].vectors
    return [task for task in sampled if task.trials]


def _cut(trials: Group, count: int) -> Group:
    """The first vectors of each trial, of attention in whole sequences."""
    made: list[Trial] = []
    for left, trial in zip(range(len(trials), 0, -1), trials, strict=True):
        own = -(-max(count, 0) // left)
        if isinstance(trial, CoreTrial):
            made.append(replace(trial, couplings=trial.couplings[:own]))
        else:
            sequences = slice(0, -(-own // trial.queries.shape[1]))
            made.append(
                replace(
                    trial,
                    queries=trial.queries[sequences],
                    keys=trial.keys[sequences],
                    values=trial.values[sequences],
                )
            )
        count -= made[-1].vectors
    return tuple(trial for trial in made if trial.vectors)


def _attempted(task: _Task, folder: Path) -> list[Outcome] | _Failure:
    try:
        return _outcomes(task, folder)
    except EntrainError as error:
        where = error.where or f"{task.block}, {task.trials[0].name}"
        return _Failure(error.what, where, error.remedy)


def _outcomes(task: _Task, folder: Path) -> list[Outcome]:
    """Of every trial and implementation."""
    outcomes = []
    for trial in task.trials:
        expected = reference(trial, folder)
        for name in task.implementations:
            found = IMPLEMENTATIONS[name](trial, folder)
            outcomes.append(_outcome(task.block, name, trial, expected, found))
    return outcomes


def _outcome(
    block: str, implementation: str, trial: Trial, expected: Answers, found: Answers
) -> Outcome:
    wrong = {name: found[name] != answer for name, answer in expected.items()}
    rows = np.array([part.reshape(trial.vectors, -1).any(axis=1) for part in wrong.values()])
    differing = np.flatnonzero(rows.any(axis=0))
    first = None
    if differing.size:
        vector = int(differing[0])
        what = next(name for name in wrong if wrong[name][vector].any())
        element = np.argwhere(np.atleast_1d(wrong[what][vector]))[0]
        first = Difference(
            trial.name,
            vector,
            f"{what}[{', '.join(map(str, element))}]",
            int(np.atleast_1d(expected[what][vector])[tuple(element)]),
            int(np.atleast_1d(found[what][vector])[tuple(element)]),
            trial.spelled(vector),
        )
    return Outcome(block, implementation, trial.vectors, len(differing), first)


def _merged(outcomes: list[Outcome]) -> tuple[Outcome, ...]:
    """One a block and implementation, in the order of both lists."""
    merged = []
    for block in SUBJECTS:
        for name in IMPLEMENTATIONS:
            own = [o for o in outcomes if (o.block, o.implementation) == (block, name)]
            firsts = [outcome.first for outcome in own if outcome.first is not None]
            if own:
                merged.append(
                    Outcome(
                        block,
                        name,
                        sum(outcome.vectors for outcome in own),
                        sum(outcome.differences for outcome in own),
                        min(firsts, key=lambda first: (first.trial, first.vector), default=None),
                    )
                )
    return tuple(merged)
