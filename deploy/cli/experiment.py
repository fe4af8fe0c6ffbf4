"""``entrain experiment``: the papers' tables and figures, run again."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from entrain.deploy.cli.options import AsJson, Quiet, RunsDir
from entrain.deploy.cli.output import Output
from entrain.deploy.errors import EntrainError
from entrain.deploy.runs import DEFAULT_ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrain.models.experiments.cluster import Workers
    from entrain.models.experiments.jobs import Job
    from entrain.models.experiments.runner import Ended
    from entrain.models.experiments.specification import Experiment
    from entrain.models.experiments.store import Record, Store

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
    from entrain.models.experiments.runner import pending
    from entrain.models.experiments.specification import find_experiment
    from entrain.models.experiments.store import Store, difference

    out = Output(machine, quiet)
    experiment = find_experiment(name)
    planned = plan(experiment, budget, _listed(variants), seeds, data_dir)
    store = Store.of(runs_dir, experiment.name, budget)
    left = pending(planned, store)
    _tell_plan(out, planned, left, store)
    workers = Processes(jobs) if ray is None else RayCluster(ray, jobs)
    ended = _run_all(out, experiment, planned, left, store, workers)
    kept = [
        record
        for job in planned
        if (record := store.find(job)) is not None and not difference(record, job)
    ]
    for path in _draw(experiment, budget, kept, store):
        if path.suffix == ".png":
            out.remark(f"plot: {path}, and as .svg")
    _print(out, experiment, budget, kept, markdown=False)
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
    _print(out, experiment, budget, kept, markdown=markdown)


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
                shown.end(one)
    except KeyboardInterrupt:
        finished = len(planned) - len(left)
        finished += sum(not isinstance(one.outcome, Failure) for one in ended)
        out.remark(f"{finished} of {len(planned)} runs are finished and kept in {store.folder}.")
        out.remark(f"To go on: {_command()}")
        raise
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


def _print(
    out: Output, experiment: Experiment, budget: str, records: Sequence[Record], *, markdown: bool
) -> None:
    """The table, with the power law where the experiment asks for one."""
    from entrain.deploy.cli.experiment_table import markdown_table, result_table, values
    from entrain.models.experiments.papers import published_figures
    from entrain.models.experiments.power_law import fit_experiment
    from entrain.models.experiments.summary import summarise

    published = published_figures(experiment)
    rows = summarise(experiment, records, published)
    fit = fit_experiment(experiment, budget, records)
    if markdown:
        out.result(values(rows, fit), markdown_table(experiment, rows, fit))
    else:
        out.result(values(rows, fit), result_table(experiment, budget, rows, fit, published))


def _draw(
    experiment: Experiment, budget: str, records: Sequence[Record], store: Store
) -> list[Path]:
    """The plots, into the experiment's folder."""
    from entrain.models.experiments.papers import published_figures
    from entrain.models.experiments.plots import draw
    from entrain.models.experiments.power_law import fit_experiment
    from entrain.models.experiments.summary import summarise

    rows = summarise(experiment, records, published_figures(experiment))
    fit = fit_experiment(experiment, budget, records)
    return draw(experiment, records, rows, fit, store.folder)


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
