"""A spotter that was trained for a moment, on rising tones in place of words."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from commands import entrain
from programs import require_emulator

from entrain.deploy.runs import Run
from entrain.models.data import stream_words

PARTS = {"train": 16, "validation": 3, "test": 3}
HERTZ = {"down": 300, "go": 600, "left": 1_000, "right": 1_600, "up": 2_400, "zero": 4_000}
TEST_ONLY = {"wow": 5_500}


def beep(hertz, seed):
    """A clip with a rising tone from 0.3 to 0.7 seconds: backwards it is another."""
    random = np.random.default_rng([hertz, seed])
    times = np.arange(16_000) / 16_000
    inside = (times >= 0.3) & (times < 0.7)
    level = random.uniform(3_000, 12_000)
    pitch = hertz * random.uniform(0.97, 1.03) * (1 + np.clip(times - 0.3, 0, 0.4))
    sound = level * inside * np.sin(2 * np.pi * np.cumsum(pitch) / 16_000)
    return np.rint(sound + random.normal(0, 20, 16_000)).astype(np.int16)


def write_beeps(folder):
    """Words in the layout of Speech Commands."""
    lists = {"validation": [], "testing": []}
    for word, hertz in {**HERTZ, **TEST_ONLY}.items():
        (folder / word).mkdir(parents=True)
        for number, part in enumerate(PARTS):
            if word in TEST_ONLY and part != "test":
                continue
            for each in range(PARTS[part]):
                name = f"{word}/{part}{each}_nohash_0.wav"
                soundfile.write(folder / name, beep(hertz, 100 * number + each), 16_000)
                if part != "train":
                    lists["testing" if part == "test" else part].append(f"{name}\n")
    for kind, names in lists.items():
        (folder / f"{kind}_list.txt").write_text("".join(names))
    (folder / "_background_noise_").mkdir()
    for seed in range(2):
        noise = np.random.default_rng(seed).normal(0, 300 + 200 * seed, 80_000).astype(np.int16)
        soundfile.write(folder / "_background_noise_" / f"noise{seed}.wav", noise, 16_000)


@pytest.fixture(scope="session")
def spotter_run(own_cache, tmp_path_factory):  # noqa: ARG001 - the cache is asked for its effect
    """A run of the task keyword-stream, trained and lowered, for looking at only."""
    require_emulator("cc")
    folder = tmp_path_factory.mktemp("beeps")
    write_beeps(folder)
    runs_dir = tmp_path_factory.mktemp("spotter") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_words, "_SPOKEN_KEYWORDS", 10)
        patch.setattr(stream_words, "_SPOKEN_OTHERS", 10)
        trained = entrain(
            *("train", "keyword-stream", "--data-dir", folder, "--epochs", 40),
            *("--runs-dir", runs_dir, "--name", "beeps"),
        )
        assert trained.code == 0, trained.err
        lowered = entrain("lower", "--runs-dir", runs_dir, "--run", "beeps")
        assert lowered.code == 0, lowered.err
    return Run(runs_dir / "beeps")


@pytest.fixture(scope="session")
def tuned_run(spotter_run, tmp_path_factory):
    """A copy of it that was tuned, for looking at only."""
    folder = tmp_path_factory.mktemp("tuned") / "runs" / "beeps"
    shutil.copytree(spotter_run.folder, folder)
    ended = entrain("tune", "--runs-dir", folder.parent, "--run", "beeps", "--hours", 0.05)
    assert ended.code == 0, ended.err
    return Run(folder)


@pytest.fixture
def said(tmp_path) -> Path:
    """A sound file: down, up and left, two seconds apart, into a little noise."""
    sound = np.random.default_rng(9).normal(0, 20, 16_000 * 7).astype(np.int16)
    for place, word in enumerate(("down", "up", "left")):
        at = 16_000 * (1 + 2 * place)
        sound[at : at + 16_000] += beep(HERTZ[word], 1_000 + place)
    path = tmp_path / "said.wav"
    soundfile.write(path, sound, 16_000)
    return path
