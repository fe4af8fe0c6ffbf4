"""``entrain build``: the firmware of a run for a board."""

from __future__ import annotations

from entrain.deploy.cli.options import AsJson, BoardName, Quiet, RunName, RunsDir, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.stages import board_named, data_of, run_or_small_default
from entrain.deploy.runs import DEFAULT_ROOT


def build(
    run: RunName = None,
    board: BoardName = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compile a run's firmware for a board, and say what it takes."""
    from entrain.deploy import pipeline

    out = Output(machine, quiet, verbose)
    target = board_named(board, "--board")
    chosen = run_or_small_default(runs_dir, run, out)
    with shown_stages(out) as stages:
        pipeline.complete(chosen, data_of(chosen, stages), stages)
        firmware = pipeline.build(chosen, target, stages)
    stack = "unknown" if firmware.stack_bytes is None else f"{firmware.stack_bytes:,}"
    out.result(
        {
            "run": chosen.name,
            "board": target.name,
            "image": str(firmware.image),
            "flash_bytes": firmware.flash_bytes,
            "ram_bytes": firmware.ram_bytes,
            "stack_bytes": firmware.stack_bytes,
        },
        f"{firmware.image}\n"
        f"flash {firmware.flash_bytes:,} of {target.flash_bytes:,} bytes, "
        f"RAM {firmware.ram_bytes:,} of {target.ram_bytes:,}, worst stack {stack}",
    )
