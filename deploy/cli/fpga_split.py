"""``entrain fpga split``: a keyword network whose attention runs in a block."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer

from entrain.deploy.cli.options import AsJson, DataDir, Quiet, RunName, RunsDir, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.sheet import Name, Number, Sheet
from entrain.deploy.cli.stages import read_data, run_or_small_default
from entrain.deploy.runs import DEFAULT_ROOT

if TYPE_CHECKING:
    from entrain.deploy.split import Split
    from entrain.deploy.tasks.contract import DataSet

CLIPS = 500

Clips = Annotated[int, typer.Option("--clips", min=1, help="Test samples, drawn from all alike.")]


def split(
    run: RunName = None,
    clips: Clips = CLIPS,
    data_dir: DataDir = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """A network with its attention in the simulated block, beside the same network as a whole."""
    from entrain.deploy.recipe import read_recipe
    from entrain.deploy.split import split_run

    out = Output(machine, quiet, verbose)
    chosen = run_or_small_default(runs_dir, run, out)
    with shown_stages(out) as stages:

        @cache
        def load() -> DataSet[Any]:
            recipe = read_recipe(chosen)
            if data_dir is not None:
                recipe = replace(recipe, data=recipe.place(data_dir))
            return read_data(recipe, stages)

        result = split_run(chosen, load, clips, stages)
    value = asdict(result) | {
        "accuracy_split": result.accuracy_split,
        "accuracy_whole": result.accuracy_whole,
        "cycles_per_query": result.cycles_per_query,
    }
    out.result(value, _table(result))


def _table(result: Split) -> Sheet:
    columns = ("clips", "same top-1", "equal outputs", "accuracy split", "whole", "cycles a query")
    row = (
        result.run,
        f"{result.clips:,}",
        f"{result.agreeing:,}",
        f"{result.identical:,}",
        f"{100 * result.accuracy_split:.1f} %",
        f"{100 * result.accuracy_whole:.1f} %",
        f"{result.cycles_per_query:.1f} (counted)",
    )
    return Sheet((Name("run"), *map(Number, columns)), [row])
