"""``entrain experiment``: the papers' tables and figures, run again."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from entrain.deploy.cli.options import AsJson, Quiet, RunsDir
from entrain.deploy.cli.output import Output
from entrain.deploy.errors import DataError, EntrainError, TrainingDiverged
from entrain.deploy.runs import DEFAULT_ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from entrain.models.experiments.cluster import Workers
    from entrain.models.experiments.jobs import Job
    from entrain.models.experiments.papers import Published
    from entrain.models.experiments.power_law import PowerLawFit
    from entrain.models.experiments.runner import Ended
    from entrain.models.experiments.specification import Experiment
    from entrain.models.experiments.store import Record, Store
    from entrain.models.experiments.summary import Row

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="See `entrain experiment list`; or a TOML file of yours."),
]
Seeds = Annotated[
    int | None,
    typer.Option("--seeds", min=1, help="Seeds 0 to N - 1; without it, as the experiment says."),
]
BudgetName = Annotated[str, typer.Option("--budget", help="How much computation: small or paper.")]
Variants = Annotated[
    str | None, typer.Option("--variants", help="Only these, separated by commas.")
]
ExperimentData = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder of the data; without it, what is built in, if any."),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="Trainings at a time; without it, one a core."),
]
Ray = Annotated[
    str | None, typer.Option("--ray", metavar="ADDRESS", help="Run on this Ray cluster.")
]
Markdown = Annotated[bool, typer.Option("--markdown", help="The table as Markdown.")]
BUDGET = "small"


@dataclass(frozen=True)
class Summary:
    """What is said of some outcomes of an experiment."""

    published: Published
    rows: Sequence[Row]
    fit: PowerLawFit | None


def list_experiments(machine: AsJson = False) -> None:
    """List the experiments: each a table or figure of the papers."""
    from entrain.deploy.cli.experiment_list import list_table
    from entrain.models.experiments.specification import experiment_names, find_experiment

    names = experiment_names()
    if machine:
        Output(machine).result(names, "")
    else:
        Output().result(names, list_table([find_experiment(name) for name in names]))


def run(
    name: Name,
    seeds: Seeds = None,
    budget: BudgetName = BUDGET,
    variants: Variants = None,
    data_dir: ExperimentData = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    jobs: Jobs = None,
    ray: Ray = None,
    machine: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment, or what is left of it. Ctrl-C keeps what is finished."""
    from entrain.models.experiments.cluster import Processes, RayCluster
    from entrain.models.experiments.jobs import plan
    from entrain.models.experiments.plots import draw
    from entrain.models.experiments.runner import pending
    from entrain.models.experiments.specification import find_experiment
    from entrain.models.experiments.store import Store

    out = Output(machine, quiet)
    experiment = find_experiment(name)
    planned = plan(experiment, budget, _listed(variants), seeds, data_dir)
    store = Store.of(runs_dir, experiment.name, budget)
    left = pending(planned, store)
    _tell_plan(out, planned, left, store)
    workers = Processes(jobs) if ray is None else RayCluster(ray, jobs)
    ended = _run_all(out, experiment, planned, left, store, workers)
    stored = _current(Output(quiet=True), experiment, budget, store)
    drawn = [record for record in stored if record.data == planned[0].data]
    asked = {(job.variant, job.seed) for job in planned}
    kept = [record for record in drawn if (record.variant, record.seed) in asked]
    _tell_missing(out, experiment, drawn)
    summary = _summarised(experiment, budget, kept)
    # All that is stored: a run of few variants must not take the others out of the plots.
    of_all = summary if len(kept) == len(drawn) else _summarised(experiment, budget, drawn)
    for path in draw(experiment, drawn, of_all.rows, of_all.fit, store.folder):
        if path.suffix == ".png":
            out.remark(f"plot: {path}, and as .svg")
    diverged = sum(one.failed_by(TrainingDiverged) for one in ended)
    _print(out, experiment, budget, summary, diverged=diverged)
    _raise_first(ended)


def show(
    name: Name,
    budget: BudgetName = BUDGET,
    runs_dir: RunsDir = DEFAULT_ROOT,
    markdown: Markdown = False,
    machine: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show what is stored of an experiment so far; nothing is run."""
    from entrain.models.experiments.specification import find_experiment
    from entrain.models.experiments.store import Store

    out = Output(machine, quiet)
    experiment = find_experiment(name)
    experiment.budget(budget)
    store = Store.of(runs_dir, experiment.name, budget)
    kept = _current(out, experiment, budget, store)
    if not kept:
        out.remark(f"Nothing is stored in {store.folder}: `entrain experiment run {name}` does it.")
    _tell_missing(out, experiment, kept)
    _print(out, experiment, budget, _summarised(experiment, budget, kept), markdown=markdown)


def _listed(names: str | None) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()] if names else []


def _tell_plan(out: Output, planned: Sequence[Job], left: Sequence[Job], store: Store) -> None:
    """What is to be done, what need not be, and what must be done anew and why."""
    from entrain.models.experiments.store import difference

    changes: dict[str, list[str]] = {}
    for job in left:
        if (record := store.find(job)) is not None:
            changes.setdefault(difference(record, job), []).append(job.name)
    for change, names in changes.items():
        out.remark(f"Run anew, the old outcome put aside: {', '.join(names)} ({change}).")
    stored = len(planned) - len(left)
    kept = f", {stored} of them finished before" if stored else ""
    out.remark(f"{len(planned)} runs{kept}; outcomes in {store.folder}")


def _run_all(
    out: Output,
    experiment: Experiment,
    planned: Sequence[Job],
    left: Sequence[Job],
    store: Store,
    workers: Workers,
) -> list[Ended]:
    """Run what is left, its progress shown."""
    from entrain.deploy.cli.experiment_progress import shown_jobs
    from entrain.models.experiments.runner import Failure, run_jobs

    ended: list[Ended] = []
    if not left:
        return ended
    try:
        with (
            shown_jobs(out, experiment, left, store) as shown,
            closing(run_jobs(left, store, workers)) as running,
        ):
            for one in running:
                ended.append(one)
                if len(ended) > 1 or not one.failed_by(DataError):  # else the command's error
                    shown.end(one)
    except KeyboardInterrupt:
        finished = len(planned) - len(left)
        finished += sum(not isinstance(one.outcome, Failure) for one in ended)
        out.remark(f"{finished} of {len(planned)} runs are finished and kept in {store.folder}.")
        out.remark(f"To go on: {_command()}")
        raise
    if not_done := len(left) - len(ended):
        out.remark(f"Data is missing: the other {not_done} runs are left too.")
    return ended


def _command() -> str:
    """The command as it was given, to be given again."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


def _current(out: Output, experiment: Experiment, budget: str, store: Store) -> list[Record]:
    """What is stored of the experiment as its file is now; what is not of it is told."""
    from dataclasses import replace

    from entrain.models.experiments.jobs import plan
    from entrain.models.experiments.store import difference

    jobs = {job.variant: job for job in plan(experiment, budget, [], 1, None)}
    kept: list[Record] = []
    for record in store.records():
        job = jobs.get(record.variant)
        if job is None:
            out.remark(f"{record.variant}, seed {record.seed}: the experiment has it no more.")
        elif change := difference(record, replace(job, seed=record.seed), data=False):
            out.remark(f"{record.variant}, seed {record.seed}: made otherwise ({change}).")
        else:
            kept.append(record)
    if len(data := sorted({record.data for record in kept})) > 1:
        out.remark(f"These runs are of different data: {', '.join(data)}.")
    return kept


def _tell_missing(out: Output, experiment: Experiment, records: Sequence[Record]) -> None:
    """Names in the file of which the outcomes have nothing: they would silently show nothing."""
    from entrain.models.experiments.summary import missing

    for words in missing(experiment, records):
        out.remark(words)


def _summarised(experiment: Experiment, budget: str, records: Sequence[Record]) -> Summary:
    """The rows, with the power law where the experiment asks for one."""
    from entrain.models.experiments.papers import published_figures
    from entrain.models.experiments.power_law import fit_experiment
    from entrain.models.experiments.summary import summarise

    published = published_figures(experiment)
    rows = summarise(experiment, records, published)
    return Summary(published, rows, fit_experiment(experiment, budget, records))


def _print(
    out: Output,
    experiment: Experiment,
    budget: str,
    summary: Summary,
    *,
    markdown: bool = False,
    diverged: int = 0,
) -> None:
    """The table; ``diverged`` is how many runs of this command did."""
    from entrain.deploy.cli.experiment_table import markdown_table, result_table, values

    published, rows, fit = summary.published, summary.rows, summary.fit
    if markdown:
        shown: RenderableType = markdown_table(experiment, rows, fit, published)
    else:
        shown = result_table(experiment, budget, rows, fit, published, diverged)
    out.result(values(rows, fit), shown)


def _raise_first(ended: Sequence[Ended]) -> None:
    """The first failure, as the error of the command; the others have been told as they came."""
    from entrain.models.experiments.runner import Failure

    failed = [(one.job, one.outcome) for one in ended if isinstance(one.outcome, Failure)]
    if not failed:
        return
    job, failure = failed[0]
    others = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    error = EntrainError(
        f"{job.variant}, seed {job.seed}{others}: {failure.what}",
        where=failure.where,
        remedy=failure.remedy,
    )
    error.exit_code = failure.exit_code
    raise error
