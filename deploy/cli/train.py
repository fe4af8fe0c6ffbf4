"""``entrain train``: from data to a trained network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from entrain.deploy.cli.options import (
    AsJson,
    Attention,
    DataDir,
    Download,
    Epochs,
    Quiet,
    RunsDir,
    Seed,
    Standard12,
    TaskName,
    Verbose,
)
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.stages import DEFAULT_TASK, read_data, recipe_of, task_named
from entrain.deploy.errors import UsageError, concerning
from entrain.deploy.recipe import open_run
from entrain.deploy.runs import DEFAULT_ROOT
from entrain.deploy.tasks import Choices, Task

MEGABYTE = 1_000_000

Name = Annotated[
    str | None, typer.Option("--name", help="Name of the run; without it, made from the recipe.")
]


def train(
    task: TaskName = DEFAULT_TASK,
    attention: Attention = "softmax",
    seed: Seed = 0,
    data_dir: DataDir = None,
    download: Download = False,
    standard_12: Standard12 = False,
    epochs: Epochs = None,
    name: Name = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train a network. Ctrl-C keeps the best so far."""
    from entrain.deploy import pipeline

    out = Output(machine, quiet, verbose)
    chosen = task_named(task)
    choices = Choices(data_dir, epochs, download, standard_12)
    recipe = recipe_of(chosen, attention, seed, choices)
    # Not before: it brings torch along, and a misspelt name is told at once.
    from entrain.models.checkpoint import load_checkpoint

    if download:
        fetch(chosen, data_dir, out)
    with shown_stages(out) as stages:
        data = read_data(recipe, stages)
        with concerning("--name"):
            run = open_run(runs_dir, recipe, name)
        pipeline.train(run, lambda: data, stages)
    accuracy = load_checkpoint(run.checkpoint).validation_accuracy
    out.result(
        {"run": run.name, "checkpoint": str(run.checkpoint), "validation_accuracy": accuracy},
        f"{run.name}: {100 * accuracy:.1f} % of the validation {chosen.sample}s; {run.checkpoint}",
    )


def fetch(task: Task[Any, Any, Any], data_dir: Path | None, out: Output) -> None:
    """Download a task's official data into the data folder, unless something is there already.

    Raises:
        UsageError: no folder is named.
        DataError: the download failed or its checksum is wrong.
    """
    if data_dir is None:
        raise UsageError(
            "it needs a folder", where="--download", remedy="name one with --data-dir FOLDER"
        )
    if data_dir.is_dir() and any(data_dir.iterdir()):
        out.remark(f"{data_dir} is not empty: nothing is downloaded.")
        return
    with shown_stages(out) as stages, stages.work(f"download the {task.sample}s") as work:
        task.download(
            data_dir,
            lambda done, total: work.reach(
                done // MEGABYTE, total // MEGABYTE if total else None, "MB"
            ),
        )
