"""``entrain flash``: put a run's firmware on a board."""

from __future__ import annotations

from entrain.deploy.cli.options import AsJson, BoardName, Quiet, RunName, RunsDir, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.stages import board_named, data_of, run_or_small_default
from entrain.deploy.errors import concerning
from entrain.deploy.runs import DEFAULT_ROOT


def flash(
    run: RunName = None,
    board: BoardName = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Build a run's firmware and put it on a board; emulated boards keep it too."""
    from entrain.deploy import flash as flashers
    from entrain.deploy import pipeline

    out = Output(machine, quiet, verbose)
    target = board_named(board, "--board")
    chosen = run_or_small_default(runs_dir, run, out)
    with shown_stages(out) as stages:
        pipeline.complete(chosen, data_of(chosen, stages), stages)
        firmware = pipeline.build(chosen, target, stages)
        with stages.stage(chosen, f"flash {target.name}", 1) as step:
            with concerning(target.name):
                flashers.flash(target, firmware.image)
            step("")
    out.result(
        {"run": chosen.name, "board": target.name, "image": str(firmware.image)},
        f"{target.name} now runs {chosen.name}",
    )
