"""Options that several commands share, as annotations; one spelling, one help text.

A command takes what it needs::

    def boards(machine: AsJson = False, quiet: Quiet = False, verbose: Verbose = False) -> None:
        output = Output(machine, quiet, verbose)

Every option can also be set as ``ENTRAIN_<OPTION>`` and in entrain.toml; see settings.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from entrain.deploy.tasks import TASKS

LARGEST_SEED = 2**31 - 1

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON value on stdout and nothing else.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no remarks.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more about each step.")]
RunsDir = Annotated[Path, typer.Option("--runs-dir", help="Folder that holds the runs.")]
RunName = Annotated[
    str | None,
    typer.Option("--run", help="Name of a run; without it, the newest trained one."),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder of the data; without it, what is built in: synthetic speech, or templates.",
    ),
]
BoardName = Annotated[
    str | None,
    typer.Option("--board", help="A board's name (see `entrain boards`); without it, mps2-an386."),
]
BoardNames = Annotated[
    str | None,
    typer.Option(
        "--boards", help="Names of boards to emulate, separated by commas; without it, mps2-an386."
    ),
]
Device = Annotated[
    str | None, typer.Option("--device", help="qemu[:BOARD], serial:PORT[:BAUD] or fpga-sim.")
]
Samples = Annotated[
    int | None, typer.Option("--samples", min=1, help="How many test samples; without it, all.")
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="Seed of everything random.")
]
TaskName = Annotated[
    str, typer.Argument(metavar="[TASK]", help=f"The task, one of: {', '.join(TASKS)}.")
]
Attention = Annotated[
    str,
    typer.Option("--attention", help="softmax, uniform, oscillator-{relu,separable,softplus}, ..."),
]
Epochs = Annotated[
    int | None,
    typer.Option(
        "--epochs",
        min=1,
        help="Epochs of training; without it, the task's own: 80 to 160 for real speech, else 20.",
    ),
]
Standard12 = Annotated[
    bool,
    typer.Option("--standard-12", help="The standard ten words, unknown and silence."),
]
Download = Annotated[
    bool, typer.Option("--download", help="Fetch the official archive into --data-dir first.")
]
