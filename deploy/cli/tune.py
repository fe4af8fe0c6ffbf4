"""``entrain tune``: thresholds and refractory times of a spotter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrain.deploy.cli.options import AsJson, Quiet, RunName, RunsDir, Seed, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import Stages, shown_stages
from entrain.deploy.cli.sheet import Name, Number, Sheet
from entrain.deploy.cli.spotters import (
    Hours,
    Snr,
    complete_spotter,
    frequency_words,
    rate_words,
    score_value,
    spotter_run,
)
from entrain.deploy.runs import DEFAULT_ROOT, Run

if TYPE_CHECKING:
    from entrain.deploy.listening.streams import Conditions
    from entrain.deploy.listening.tuning import Tuned


def tune(
    run: RunName = None,
    hours: Hours = 2.0,
    snr: Snr = 10.0,
    seed: Seed = 0,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Choose a spotter's thresholds and refractory times, on the tuning data alone."""
    from entrain.deploy.listening.settings import settings_path, write_settings
    from entrain.deploy.listening.streams import Conditions

    out = Output(machine, quiet, verbose)
    chosen = spotter_run(runs_dir, run)
    with shown_stages(out) as stages:
        complete_spotter(chosen, stages)
        tuned = _tuned(chosen, Conditions(hours, snr, seed), stages)
    write_settings(chosen, tuned.settings)
    out.result(
        {
            "run": chosen.name,
            "settings": tuned.settings.model_dump(),
            "words": score_value(tuned.words),
            "noise": score_value(tuned.noise),
        },
        _table(tuned),
    )
    out.remark(
        f"On the tuning data, which it was chosen by: missed {rate_words(tuned.words.misses)}; "
        f"other words taken for one {rate_words(tuned.words.accepted)}; in noise alone "
        f"{frequency_words(tuned.noise.false_accepts)}."
    )
    out.remark(f"{settings_path(chosen)}; 'entrain stream-test' tells what it is worth")


def _tuned(run: Run, conditions: Conditions, stages: Stages) -> Tuned:
    from entrain.deploy.listening.firmware import untuned_spotter_of
    from entrain.deploy.listening.settings import digest_of
    from entrain.deploy.listening.streams import recordings
    from entrain.deploy.listening.tuning import tune as choose
    from entrain.deploy.recipe import read_recipe
    from entrain.deploy.tasks.keyword_stream import stream_words

    with stages.work("read the tuning clips"):
        sound = recordings(stream_words(read_recipe(run)).tuning, conditions)
    spotter = untuned_spotter_of(run)
    words = spotter.through(sound.words, "words in noise", stages)
    noise = spotter.through(sound.noise, "noise alone", stages)
    tuned = choose(spotter.settings, words, noise)
    settings = tuned.settings.model_copy(update={"tuned_for": digest_of(run)})
    return type(tuned)(settings, tuned.words, tuned.noise)


def _table(tuned: Tuned) -> Sheet:
    rows = [
        (word, f"{threshold:.2f}", f"{tuned.settings.refractory_seconds[word]:.2f} s")
        for word, threshold in tuned.settings.thresholds.items()
    ]
    return Sheet((Name("word"), Number("threshold"), Number("not again for")), rows)
