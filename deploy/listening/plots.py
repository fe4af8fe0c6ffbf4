"""Drawings: curves over the threshold; and what was heard in a sound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from entrain.deploy.files import writing_whole
from entrain.deploy.listening.hops import Hops
from entrain.models.data.clips import FULL_SCALE, SAMPLE_RATE, Samples
from entrain.models.features import HOP
from entrain.models.front_end import log_mel

if TYPE_CHECKING:
    from entrain.deploy.listening.curve import Point


def draw_curves(curves: Mapping[str, Sequence[Point]], path: Path) -> None:
    """Misses beside other words that are taken for one, and beside false accepts in noise.

    Args:
        curves: of each run.
        path: an .svg or .png file, written whole.

    Raises:
        UsageError: the file cannot be written there.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.4, 4.2), layout="constrained")
    others, noise = figure.subplots(1, 2, sharey=True)
    for name, points in curves.items():
        misses = [100 * point.words.misses.share for point in points]
        accepted = [100 * point.words.accepted.share for point in points]
        false = [point.noise.false_accepts.an_hour for point in points]
        others.plot(accepted, misses, marker=".", label=name)
        noise.plot(false, misses, marker=".", label=name)
    others.set_xlabel("other words taken for a keyword, %")
    others.set_ylabel("keywords missed, %")
    noise.set_xlabel("false accepts an hour in noise alone")
    noise.set_xscale("symlog", linthresh=0.1)
    for panel in (others, noise):
        panel.grid(visible=True, alpha=0.3)
    others.legend(fontsize="small")
    _save(figure, path)


def draw_heard(
    samples: Samples, hops: Hops, labels: Sequence[str], words: Sequence[str], path: Path
) -> None:
    """Waveform, spectrogram, scores, and the words where they were heard.

    Args:
        samples: the sound, int16 [N].
        hops: what was made of it.
        labels: all classes.
        words: those that are spotted.
        path: an .svg or .png file, written whole.

    Raises:
        UsageError: the file cannot be written there.
    """
    from matplotlib.figure import Figure

    seconds = len(samples) / SAMPLE_RATE
    figure = Figure(figsize=(min(40.0, max(8.0, seconds)), 7.0), layout="constrained")
    wave, mel, scores = figure.subplots(3, 1, sharex=True)
    step = max(1, len(samples) // 20_000)
    times = np.arange(0, len(samples), step) / SAMPLE_RATE
    wave.plot(times, samples[::step] / FULL_SCALE, linewidth=0.5)
    wave.set_ylabel("sound")
    bands = log_mel(samples[None])[0].T
    extent = (0.0, bands.shape[1] * HOP / SAMPLE_RATE, 0, len(bands))
    mel.imshow(bands, aspect="auto", origin="lower", extent=extent, cmap="magma")
    mel.set_ylabel("mel band")
    for place, label in enumerate(labels[: len(words)]):
        scores.plot(hops.at / SAMPLE_RATE, hops.scores[:, place] / 1e6, label=label)
    scores.set_ylabel("score")
    scores.set_ylim(0, 1.05)
    scores.set_xlabel("seconds")
    scores.legend(loc="upper right", fontsize="small", ncols=len(words))
    for heard in hops.heard:
        for panel in (wave, mel, scores):
            panel.axvline(heard.seconds, color="tab:red", linewidth=1)
        wave.annotate(
            words[heard.word], (heard.seconds, 1), xycoords=("data", "axes fraction"), va="top"
        )
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    with writing_whole(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".") or "svg")
