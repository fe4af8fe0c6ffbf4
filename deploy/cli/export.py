"""``entrain export``: a quantized network as ordinary QCDQ ONNX."""

from __future__ import annotations

from entrain.deploy.cli.options import AsJson, Quiet, RunName, RunsDir, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.stages import data_of, run_or_small_default
from entrain.deploy.runs import DEFAULT_ROOT


def export(
    run: RunName = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write a quantized network as QCDQ ONNX, with golden values from onnxruntime."""
    from entrain.deploy import pipeline

    out = Output(machine, quiet, verbose)
    chosen = run_or_small_default(runs_dir, run, out)
    with shown_stages(out) as stages:
        pipeline.redo(chosen, data_of(chosen, stages), stages, "export")
    out.result(
        {"run": chosen.name, "onnx": str(chosen.onnx), "golden": str(chosen.golden_onnx)},
        f"{chosen.name}: {chosen.onnx}",
    )
