"""A spotter without a trained network, and sounds that it hears something in."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from entrain.deploy.listening.bands import SHIFT, BandMaps
from entrain.deploy.listening.c_sources import write_sources
from entrain.deploy.listening.host import HostSpotter
from entrain.deploy.listening.settings import SpotterSettings

MODEL = Path(__file__).parents[1] / "firmware" / "models" / "spotter"
CLASSES = 4
# Loud is 100, silence -90: a step of the front end is 2^-11.
BANDS = BandMaps(np.full(40, 160_000), np.full(40, int(2**SHIFT * 0.5) + 2**31), -128, 127)


def settings(thresholds=(0.8, 0.8), refractory=(1.0, 0.5), **other):
    words = ("low", "high")
    return SpotterSettings(
        thresholds=dict(zip(words, thresholds, strict=True)),
        refractory_seconds=dict(zip(words, refractory, strict=True)),
        **{"hop_frames": 5, "smoothed_hops": 3, **other},
    )


def host_spotter(folder, chosen):
    write_sources(folder, chosen, BANDS, CLASSES)
    return HostSpotter(MODEL, folder, len(chosen.words), CLASSES)


def tones(seconds, seed=0, pauses=True):
    """Low tones, high ones, both and (unless told otherwise) nothing, a third of a second each."""
    random = np.random.default_rng(seed)
    times = np.arange(16_000 // 3) / 16_000
    parts = []
    for _ in range(3 * seconds + 1):
        low, high = random.uniform(0, 1, 2) * random.integers(0, 2, 2)
        sound = low * np.sin(2 * np.pi * 150 * times) + high * np.sin(2 * np.pi * 1_600 * times)
        if not pauses:
            sound = sound + 0.05 * random.standard_normal(len(times))
        parts.append(np.rint(9_000 * sound).astype(np.int16))
    return np.concatenate(parts)[: 16_000 * seconds]
