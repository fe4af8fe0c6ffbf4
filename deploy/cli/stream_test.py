"""``entrain stream-test``: spotters in hours of sound."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from entrain.deploy.cli.options import AsJson, Device, Quiet, RunsDir, Seed, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import Stages, shown_stages
from entrain.deploy.cli.sheet import Name, Number, Sheet
from entrain.deploy.cli.spotters import (
    Coding,
    Hours,
    Snr,
    complete_spotter,
    frequency_words,
    rate_words,
    score_value,
    spotter_run,
)
from entrain.deploy.cli.stages import names
from entrain.deploy.errors import Mismatch
from entrain.deploy.runs import DEFAULT_ROOT, Run

if TYPE_CHECKING:
    from entrain.deploy.listening.board import Work
    from entrain.deploy.listening.curve import Point
    from entrain.deploy.listening.load import Load
    from entrain.deploy.listening.scoring import Score
    from entrain.deploy.listening.streams import Conditions

REFERENCE_MHZ = 120.0  # of a small board that listens; emulated ones run at an FPGA's clock

Runs = Annotated[
    str | None,
    typer.Option(
        "--run", help="Names of runs, separated by commas; without it, the newest spotter."
    ),
]
Minutes = Annotated[
    float,
    typer.Option("--minutes", min=0.01, help="How much of it the device hears too (--device)."),
]
Plot = Annotated[
    Path | None, typer.Option("--plot", help="Draw the curves into a file, .svg or .png.")
]


@dataclass(frozen=True, eq=False)
class Tested:
    """A spotter's result.

    Args:
        run: its run.
        words: hours of words in noise, by its own thresholds.
        noise: noise alone, likewise.
        curve: the same with one threshold for all words, over that.
        work: what the device took; None where none heard it.
        load: its share of the core's time, of an emulated core at a clock that real ones have.
    """

    run: Run
    words: Score
    noise: Score
    curve: list[Point]
    work: Work | None
    load: Load | None


def stream_test(
    run: Runs = None,
    hours: Hours = 1.0,
    snr: Snr = 10.0,
    seed: Seed = 1,
    device: Device = None,
    minutes: Minutes = 10.0,
    coding: Coding = "pcm",
    plot: Plot = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Hear hours of test words and noise: misses, false accepts, delays, over the threshold."""
    from entrain.deploy.listening.board import coder_named
    from entrain.deploy.listening.streams import Conditions

    out = Output(machine, quiet, verbose)
    coder_named(coding)
    chosen = [spotter_run(runs_dir, name) for name in (names(run, "--run") if run else [None])]
    conditions = Conditions(hours, snr, seed)
    with shown_stages(out) as stages:
        tested = [_tested(each, conditions, device, minutes, coding, stages) for each in chosen]
    if plot is not None:
        from entrain.deploy.listening.plots import draw_curves

        draw_curves({each.run.name: each.curve for each in tested}, plot)
    out.result([_value(each, conditions) for each in tested], _tables(tested))
    for each in tested:
        for line in _remarks(each):
            out.remark(line)


def _tested(
    run: Run,
    conditions: Conditions,
    device: str | None,
    minutes: float,
    coding: str,
    stages: Stages,
) -> Tested:
    from entrain.deploy.listening.curve import curve
    from entrain.deploy.listening.firmware import spotter_of
    from entrain.deploy.listening.streams import recordings
    from entrain.deploy.listening.tuning import judged
    from entrain.deploy.recipe import read_recipe
    from entrain.deploy.tasks.keyword_stream import stream_words

    complete_spotter(run, stages)
    with stages.work("read the test clips"):
        sound = recordings(stream_words(read_recipe(run)).test, conditions)
    spotter = spotter_of(run)
    words = spotter.through(sound.words, "words in noise", stages)
    noise = spotter.through(sound.noise, "noise alone", stages)
    work = load = None
    if device is not None:
        from entrain.deploy.listening.device_check import compare_with_device
        from entrain.deploy.listening.load import load_of

        checked = compare_with_device(spotter, device, sound.words, minutes, coding, stages)
        work = checked.work
        load = load_of(work, spotter.settings, checked.board, REFERENCE_MHZ)
        if checked.differing:
            raise Mismatch(
                f"{checked.differing} of {checked.hops} hops are unlike this machine's",
                where=f"{run.name} on {device}",
                remedy="flash this run's firmware, then test again",
            )
    return Tested(
        run,
        judged(spotter.settings, words),
        judged(spotter.settings, noise),
        curve(spotter.settings, words, noise),
        work,
        load,
    )


def _value(tested: Tested, conditions: Conditions) -> dict[str, Any]:
    work = tested.work
    return {
        "run": tested.run.name,
        "hours": conditions.hours,
        "snr_db": conditions.snr_db,
        "seed": conditions.seed,
        "words": score_value(tested.words),
        "noise": score_value(tested.noise),
        "curve": [
            {
                "threshold": point.threshold,
                "misses": point.words.misses.share,
                "accepted": point.words.accepted.share,
                "false_accepts_in_noise_an_hour": point.noise.false_accepts.an_hour,
                "median_delay_seconds": point.words.median_delay,
            }
            for point in tested.curve
        ],
        "device": None
        if work is None
        else {
            "hops_equal": work.hops,
            "front_end_microseconds": work.front_end_us,
            "network_microseconds": work.network_us,
            "front_end_instructions": work.front_end_instructions,
            "network_instructions": work.network_instructions,
            "load": tested.load and asdict(tested.load),
        },
    }


def _tables(tested: list[Tested]) -> Group:
    columns = (
        Name("threshold"),
        Number("missed"),
        Number("others taken"),
        Number("in noise, an hour"),
        Number("delay"),
    )
    return Group(*(Sheet(columns, _rows(each)) for each in tested))


def _rows(tested: Tested) -> list[tuple[str, ...]]:
    own = ("tuned", tested.words, tested.noise)
    points = [(f"{point.threshold:.2f}", point.words, point.noise) for point in tested.curve[::5]]
    return [
        (
            name,
            f"{100 * words.misses.share:.1f} %",
            f"{100 * words.accepted.share:.1f} %",
            f"{noise.false_accepts.an_hour:.2f}",
            "" if words.median_delay is None else f"{1000 * words.median_delay:.0f} ms",
        )
        for name, words, noise in (own, *points)
    ]


def _remarks(tested: Tested) -> list[str]:
    words, noise = tested.words, tested.noise
    lines = [
        f"{tested.run.name}, tuned: missed {rate_words(words.misses)}; other words taken for one "
        f"{rate_words(words.accepted)}; in noise alone {frequency_words(noise.false_accepts)}."
    ]
    if words.median_delay is not None and words.median_from_start is not None:
        lines.append(
            f"Heard {1000 * words.median_delay:.0f} ms after a word's end in the median, "
            f"{1000 * words.median_from_start:.0f} ms after its start."
        )
    if tested.work is not None:
        lines.append(f"On the device {tested.work.hops:,} hops, every score and word the same.")
    if tested.load is not None:
        clock = "" if tested.load.mhz is None else f" at {tested.load.mhz:g} MHz"
        lines.append(
            f"Of the core's time{clock} the front end takes {100 * tested.load.front_end:.1f} %, "
            f"the network {100 * tested.load.network:.1f} % ({tested.load.kind})."
        )
    return lines
