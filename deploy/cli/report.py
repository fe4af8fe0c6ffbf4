"""``entrain report``: what was measured, as a table and as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from entrain.deploy.cli.options import AsJson, Quiet, RunsDir, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.errors import UsageError
from entrain.deploy.results_file import read_results, row_values
from entrain.deploy.runs import DEFAULT_ROOT, Run, find_run, newest_results

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN|results.json",
        help="A run, a comparison or a results.json; without it, what was measured last.",
        show_default=False,
    ),
]
Page = Annotated[
    Path | None,
    typer.Option("--output", help="Where to write the page; without it, beside results.json."),
]


Markdown = Annotated[
    bool, typer.Option("--markdown", help="Print the means over seeds as a Markdown table.")
]


def report(
    source: Source = None,
    output: Page = None,
    markdown: Markdown = False,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Print what was measured and write it as one self-contained HTML page."""
    from entrain.deploy.report.page import write_page
    from entrain.deploy.report.summary import summary_markdown
    from entrain.deploy.report.table import results_table

    out = Output(machine, quiet, verbose)
    path = results_path(source, runs_dir)
    out.detail(f"reading {path}")
    results = read_results(path)
    page = output or path.with_name("report.html")
    write_page(page, results)
    if markdown and not machine:
        typer.echo(summary_markdown(results))
    else:
        out.result(row_values(results), results_table(results))
    out.remark(f"report: {page}")


def results_path(source: str | None, runs_dir: Path) -> Path:
    """The results.json that ``source`` means.

    Raises:
        UsageError: no such run, or nothing was measured yet, or the run is none that is.
    """
    if source is None:
        return newest_results(runs_dir).results
    path = Path(source)
    if path.suffix == ".json" or path.is_file():
        return path
    run = Run(path) if path.is_dir() else find_run(runs_dir, source)
    _refuse_imported(run)
    return run.results


def _refuse_imported(run: Run) -> None:
    """What is measured needs a task's data, and an imported model belongs to no task."""
    from entrain.deploy.pipeline import IMPORTED

    if run.task == IMPORTED and not run.results.is_file():
        raise UsageError(
            f"the run {run.name} holds an imported ONNX file, and reports are of networks that "
            "were trained here",
            where=str(run.folder),
            remedy=f"'entrain profile --run {run.name}' counts the instructions of every layer, "
            f"'entrain validate --run {run.name}' holds a device to its integers",
        )
