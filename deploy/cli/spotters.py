"""What the commands that listen have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from entrain.deploy.cli.progress import Stages
from entrain.deploy.cli.stages import data_of
from entrain.deploy.errors import UsageError
from entrain.deploy.runs import Run, find_run, newest_run

if TYPE_CHECKING:
    from entrain.deploy.listening.scoring import Frequency, Rate, Score

SPOTTER_TASK = "keyword-stream"

Hours = Annotated[
    float,
    typer.Option(
        "--hours", min=0.01, max=1000, help="Hours of words in noise; twice as much of noise alone."
    ),
]
Snr = Annotated[
    float,
    typer.Option("--snr", min=-20, max=60, help="Decibels by which words stand above the noise."),
]
Coding = Annotated[
    str, typer.Option("--coding", help="How sound goes over the serial line: pcm or adpcm.")
]


def spotter_run(root: Path, name: str | None) -> Run:
    """The run of that name, or the newest spotter.

    Raises:
        UsageError: there is none.
    """
    if name is not None:
        return find_run(root, name)
    run = newest_run(root, SPOTTER_TASK)
    if run is None:
        raise UsageError(
            "there is no spotter yet",
            where=str(root),
            remedy="train one: entrain train keyword-stream --data-dir FOLDER",
        )
    return run


def complete_spotter(run: Run, stages: Stages) -> None:
    """Make what is missing of a spotter's run, up to its C."""
    from entrain.deploy import pipeline

    pipeline.complete(run, data_of(run, stages), stages)


def rate_words(rate: Rate) -> str:
    """A share with its interval."""
    low, high = rate.interval
    return (
        f"{100 * rate.share:.1f} % ({rate.count} of {rate.n:,}; "
        f"{100 * low:.1f} to {100 * high:.1f} %)"
    )


def frequency_words(frequency: Frequency) -> str:
    """Times an hour with their interval."""
    low, high = frequency.interval
    return (
        f"{frequency.an_hour:.2f} an hour ({frequency.count} in {frequency.hours:g} h; "
        f"{low:.2f} to {high:.2f})"
    )


def score_value(score: Score) -> dict[str, object]:
    """A score for ``--json``."""
    return {
        "misses": _rate(score.misses),
        "accepted": _rate(score.accepted),
        "false_accepts": {
            "count": score.false_accepts.count,
            "hours": score.false_accepts.hours,
            "an_hour": score.false_accepts.an_hour,
            "interval": score.false_accepts.interval,
        },
        "heard_again": score.again,
        "median_delay_seconds": score.median_delay,
        "median_seconds_from_start": score.median_from_start,
    }


def _rate(rate: Rate) -> dict[str, object]:
    return {"count": rate.count, "n": rate.n, "share": rate.share, "interval": rate.interval}
