"""A small road, walked once for all tests that look at it: tones as words, two mechanisms."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from commands import Ended, entrain
from programs import require_emulator

from entrain.deploy.runs import Run

WORDS = ("high", "low", "mid")
CLIPS = {"training": 12, "validation": 4, "testing": 4}  # of each word
MECHANISMS = ("softmax", "oscillator-separable")
BOARDS = ("mps2-an386", "mps3-an547")


@dataclass(frozen=True)
class Road:
    """A data folder, a folder of runs, and the comparison that was made there."""

    data: Path
    runs_dir: Path
    compared: Ended

    def run(self, mechanism: str) -> Run:
        return Run(self.runs_dir / f"keyword-{mechanism}-tones-seed0-e1")

    def compare(self, name: str, *more: object) -> Ended:
        """The comparison again, under another name."""
        return _compare(
            *("keyword", self.data, self.runs_dir, MECHANISMS),
            *("--epochs", 1, "--samples", 6, "--name", name, *more),
        )


def _compare(
    task: str, data: Path, runs_dir: Path, mechanisms: tuple[str, ...], *more: object
) -> Ended:
    """Compare mechanisms of a task on two emulated boards."""
    return entrain(
        *("compare", task, "--data-dir", data, "--runs-dir", runs_dir),
        *("--attention", ",".join(mechanisms), "--boards", ",".join(BOARDS), "--json", *more),
    )


@pytest.fixture(scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of the tests' own: nothing of the user's is read or written."""
    import torch

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.delenv("ENTRAIN_CACHE_DIR", raising=False)
        yield folder


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C interrupts, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def tones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in Speech Commands' layout whose words are tones."""
    folder = tmp_path_factory.mktemp("data") / "tones"
    write_tones(folder, WORDS)
    return folder


@pytest.fixture(scope="session")
def walked(
    tones: Path,
    own_cache: Path,  # noqa: ARG001 - asked for its effect
    tmp_path_factory: pytest.TempPathFactory,
) -> Road:
    """The whole road, from clips to what two boards answered; for looking at only."""
    require_emulator("cc")
    runs_dir = tmp_path_factory.mktemp("road") / "runs"
    nothing = Ended(0, "", "")
    compared = Road(tones, runs_dir, nothing).compare("first")
    assert compared.code == 0, compared.err
    return Road(tones, runs_dir, compared)


@pytest.fixture(scope="session")
def compare_first(
    own_cache: Path,  # noqa: ARG001 - asked for its effect
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., tuple[Ended, Path]]:
    """A comparison named ``first`` of any task's mechanisms, in a folder of runs of its own."""

    def compare(
        task: str, data: Path, mechanisms: tuple[str, ...], *more: object
    ) -> tuple[Ended, Path]:
        require_emulator("cc")
        runs_dir = tmp_path_factory.mktemp(task) / "runs"
        ended = _compare(task, data, runs_dir, mechanisms, "--name", "first", *more)
        assert ended.code == 0, ended.err
        return ended, runs_dir

    return compare


@pytest.fixture
def road(walked: Road, tmp_path: Path) -> Road:
    """A copy of the whole road, to go on from or to break."""
    # CMake's trees know where they lie.
    shutil.copytree(walked.runs_dir, tmp_path / "runs", ignore=shutil.ignore_patterns("build"))
    return Road(walked.data, tmp_path / "runs", walked.compared)


@pytest.fixture(scope="session")
def run_entrain() -> Callable[..., Ended]:
    """Runs commands in this process, where the tests are run."""
    return entrain


@pytest.fixture
def entrain_here(
    own_cache: Path,  # noqa: ARG001 - asked for its effect
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Ended]:
    """Runs commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return entrain


def write_tones(folder: Path, words: tuple[str, ...]) -> None:
    """Clips of one second, a tone a word, with the official lists."""
    import soundfile

    random = np.random.default_rng(0)
    time = np.arange(16_000) / 16_000
    lists: dict[str, list[str]] = {"validation": [], "testing": []}
    for number, word in enumerate(words):
        (folder / word).mkdir(parents=True)
        for part, count in CLIPS.items():
            for take in range(count):
                name = f"{word}/{part}{take % 3}_nohash_{take}.wav"
                pitch = 300 * 3**number * random.uniform(0.9, 1.1)
                sound = 0.2 * np.sin(2 * np.pi * pitch * time)
                sound += 0.01 * random.standard_normal(time.size)
                soundfile.write(folder / name, np.rint(32_767 * sound).astype(np.int16), 16_000)
                if part in lists:
                    lists[part].append(name)
    for part, names in lists.items():
        (folder / f"{part}_list.txt").write_text("\n".join(names) + "\n")
