"""``entrain quantize``: a trained network in 8 bits."""

from __future__ import annotations

from entrain.deploy.cli.options import AsJson, Quiet, RunName, RunsDir, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.stages import data_of, run_or_small_default
from entrain.deploy.runs import DEFAULT_ROOT


def quantize(
    run: RunName = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Calibrate a trained network in 8 bits and fine-tune it so."""
    from entrain.deploy import pipeline

    out = Output(machine, quiet, verbose)
    chosen = run_or_small_default(runs_dir, run, out)
    with shown_stages(out) as stages:
        pipeline.redo(chosen, data_of(chosen, stages), stages, "quantize")
    path = str(chosen.quantized_checkpoint)
    out.result({"run": chosen.name, "quantized": path}, f"{chosen.name}: {path}")
