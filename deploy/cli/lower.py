"""``entrain lower``: a QCDQ ONNX file, anyone's, as integer C."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from entrain.deploy.cli.options import AsJson, Quiet, RunName, RunsDir, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.stages import data_of, run_or_small_default
from entrain.deploy.errors import UsageError, concerning
from entrain.deploy.files import write_whole
from entrain.deploy.runs import DEFAULT_ROOT, Run, checked_name, create_run

if TYPE_CHECKING:
    from entrain.deploy.lowering.artifact import LoweredModel

Onnx = Annotated[
    Path | None,
    typer.Argument(
        metavar="[MODEL.onnx]",
        help="A QCDQ ONNX file, which gets a run of its own; without it, the run's model.onnx.",
        show_default=False,
    ),
]


def lower(
    onnx: Onnx = None,
    run: RunName = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Turn a QCDQ ONNX file into integer C, and check it on this machine."""
    from entrain.deploy import pipeline
    from entrain.deploy.lowering.artifact import read_lowered

    out = Output(machine, quiet, verbose)
    if onnx is None:
        chosen = run_or_small_default(runs_dir, run, out)
    else:
        chosen = _imported(onnx, runs_dir, run, out)
    with shown_stages(out) as stages:
        pipeline.redo(chosen, data_of(chosen, stages), stages, "lower")
    model = read_lowered(chosen.lowered)
    out.result(model.model_dump(mode="json"), _table(model))
    out.remark(f"{chosen.name}: {chosen.lowered}")


def _imported(onnx: Path, runs_dir: Path, name: str | None, out: Output) -> Run:
    """A run that holds a copy of the file, weights and all, made once the file proved usable.

    A run that holds another model is replaced only if it is named, and that is said.

    Raises:
        UsageError: a run of that name holds a network that is trained here, or another file that
            only happens to be called the same.
        ModelError: the file cannot be lowered.
    """
    import onnx as onnx_format

    from entrain.deploy.lowering.stage import lower as lower_file
    from entrain.deploy.pipeline import IMPORTED

    with concerning("--run"):
        run = Run(runs_dir / checked_name(name or onnx.stem))
    if run.config.is_file() and run.task != IMPORTED:
        raise UsageError(
            f"the run {run.name} holds a network that is trained here",
            where=str(run.folder),
            remedy="choose another name with --run",
        )
    with tempfile.TemporaryDirectory(prefix="entrain-lower-") as trial:
        lower_file(onnx, Path(trial) / "lowered", task=IMPORTED, name=run.name)
    # with the weights that lie in files beside it
    model = onnx_format.load(str(onnx)).SerializeToString()
    if run.onnx.is_file() and run.onnx.read_bytes() != model:
        if name is None:
            raise UsageError(
                f"the run {run.name} holds another model",
                where=str(run.folder),
                remedy=f"choose another name with --run, or replace it with --run {run.name}",
            )
        out.remark(f"{run.name} held another model, which this one replaces.")
    run = create_run(runs_dir, run.name, {"task": IMPORTED})
    write_whole(run.onnx, model)
    return run


def _table(model: LoweredModel) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("layer", "does", "shape", "type"):
        table.add_column(title, no_wrap=True)
    for title in ("MACs", "offset"):
        table.add_column(title, justify="right", no_wrap=True)
    for layer in model.layers:
        table.add_row(
            layer.name,
            layer.op,
            "\N{MULTIPLICATION SIGN}".join(str(extent) for extent in layer.shape),
            layer.dtype,
            f"{layer.macs:,}",
            "" if layer.offset is None else str(layer.offset),
        )
    return table
