"""``entrain lower``: a QCDQ ONNX file, anyone's, as integer C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from entrain.deploy.cli.options import AsJson, Quiet, RunName, RunsDir, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.sheet import Column, Name, Number, Sheet, Words
from entrain.deploy.cli.stages import data_of, run_or_small_default
from entrain.deploy.errors import UsageError, concerning
from entrain.deploy.runs import DEFAULT_ROOT, Run, checked_name

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
        with shown_stages(out) as stages:
            pipeline.redo(chosen, data_of(chosen, stages), stages, "lower")
    else:
        chosen = _imported(onnx, runs_dir, run, out)
    model = read_lowered(chosen.lowered)
    out.result(model.model_dump(mode="json"), _table(model))
    out.remark(_agreement(model))
    out.remark(f"{chosen.name}: {chosen.lowered}")


def _imported(onnx: Path, runs_dir: Path, name: str | None, out: Output) -> Run:
    """A run that holds the file, lowered.

    A run that holds another model is replaced only if it is named, and that is said.

    Raises:
        UsageError: a run of that name holds a network that is trained here, or another file that
            only happens to be called the same.
        ModelError: the file cannot be lowered.
    """
    from entrain.deploy.pipeline import IMPORTED, import_model, whole_model

    with concerning("--run"):
        run = Run(runs_dir / checked_name(name or onnx.stem))
    if run.config.is_file() and run.task != IMPORTED:
        raise UsageError(
            f"the run {run.name} holds a network that is trained here",
            where=str(run.folder),
            remedy="choose another name with --run",
        )
    replaced = run.onnx.is_file() and run.onnx.read_bytes() != whole_model(onnx)
    if replaced and name is None:
        raise UsageError(
            f"the run {run.name} holds another model",
            where=str(run.folder),
            remedy=f"choose another name with --run, or replace it with --run {run.name}",
        )
    with shown_stages(out) as stages:
        import_model(run, onnx, stages)
    if replaced:
        out.remark(f"{run.name} held another model, which this one replaces.")
    return run


def _agreement(model: LoweredModel) -> str:
    """What the stage found out about the outputs."""
    found = model.onnxruntime
    if found is None:
        return "Not compared with onnxruntime, which cannot run the file on random inputs."
    if not found.differing:
        return f"All {found.elements:,} numbers that it puts out are as in onnxruntime."
    steps = f"{found.largest_steps} step{'s' if found.largest_steps > 1 else ''}"
    return (
        f"{found.differing:,} of {found.elements:,} numbers that it puts out differ from "
        f"onnxruntime's, by {steps} at most."
    )


def _table(model: LoweredModel) -> Sheet:
    rows = [
        (
            layer.name,
            layer.op,
            "\N{MULTIPLICATION SIGN}".join(str(extent) for extent in layer.shape),
            layer.dtype,
            f"{layer.macs:,}",
            "" if layer.offset is None else f"{layer.offset:,}",
        )
        for layer in model.layers
    ]
    exact = (Column("shape"), Column("type"), Number("MACs"), Number("offset"))
    return Sheet((Name("layer"), Words("does"), *exact), rows)
