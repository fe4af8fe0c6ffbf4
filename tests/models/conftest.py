"""What the tests of models/ share: an empty cache, small data, and the real recordings if there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from real_data import SPEECH_COMMANDS, TEXT

from entrain.models.data.clips import CLIP_SAMPLES, SAMPLE_RATE, Clips, KeywordData
from entrain.models.front_end.library import load


@pytest.fixture(scope="session", autouse=True)
def front_end() -> None:
    """Compiled once, in the user's cache: those of the tests are empty."""
    load()


@pytest.fixture(autouse=True)
def cache_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def speech_commands() -> Path:
    """The folder of real recordings."""
    if not SPEECH_COMMANDS.is_dir():
        pytest.skip(f"no recordings at {SPEECH_COMMANDS}")
    return SPEECH_COMMANDS


@pytest.fixture(scope="session")
def text_folder() -> Path:
    """The folder of real texts."""
    if not TEXT.is_dir():
        pytest.skip(f"no texts at {TEXT}")
    return TEXT


def tones(count: int, seed: int) -> Clips:
    """Two classes that are easy to tell apart: a low and a high tone in noise."""
    random = np.random.default_rng(seed)
    targets = np.arange(count) % 2
    time = np.arange(CLIP_SAMPLES) / SAMPLE_RATE
    pitch = np.where(targets == 0, 300.0, 2500.0) * random.uniform(0.9, 1.1, count)
    sound = np.sin(2 * np.pi * pitch[:, None] * time) + 0.1 * random.standard_normal(
        (count, CLIP_SAMPLES)
    )
    return Clips(
        samples=np.rint(6000 * sound).astype(np.int16),
        targets=targets.astype(np.int64),
        speakers=tuple(f"speaker{seed}" for _ in range(count)),
        names=tuple(f"tone{seed}-{number}" for number in range(count)),
    )


@pytest.fixture(scope="session")
def tone_data() -> KeywordData:
    noise = np.random.default_rng(9).integers(-900, 900, 2 * CLIP_SAMPLES).astype(np.int16)
    return KeywordData(
        labels=("low", "high"),
        train=tones(64, 1),
        validation=tones(16, 2),
        test=tones(16, 3),
        background=(noise,),
        source="tones",
    )
