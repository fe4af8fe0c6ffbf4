"""Run folders: one run is one trained model, and every stage writes what it made into it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from entrain.deploy.errors import UsageError
from entrain.deploy.files import write_whole
from entrain.deploy.toml import read_toml, toml_text

DEFAULT_ROOT = Path("runs")
COMPARISON_PREFIX = "compare-"


@dataclass(frozen=True)
class Run:
    """A run's folder and the files it may hold; a stage not yet done has none of its files."""

    folder: Path

    @property
    def name(self) -> str:
        """The run's name: that of its folder."""
        return self.folder.name

    @property
    def config(self) -> Path:
        """What was asked for: task, mechanism, seed, recipe."""
        return self.folder / "config.toml"

    @property
    def checkpoint(self) -> Path:
        """The trained network."""
        return self.folder / "model.pt"

    @property
    def quantized_checkpoint(self) -> Path:
        """Its quantized twin, before export."""
        return self.folder / "quantized.pt"

    @property
    def onnx(self) -> Path:
        """The quantized network as QCDQ ONNX."""
        return self.folder / "model.onnx"

    @property
    def golden_onnx(self) -> Path:
        """Values at the quantization boundaries, from onnxruntime."""
        return self.folder / "golden_onnx.npz"

    @property
    def lowered(self) -> Path:
        """The folder of the integer C."""
        return self.folder / "lowered"

    def firmware(self, board: str) -> Path:
        """The image for a board."""
        return self.folder / f"firmware-{board}.elf"

    @property
    def results(self) -> Path:
        """What was measured."""
        return self.folder / "results.json"

    @property
    def report(self) -> Path:
        """The page made from it."""
        return self.folder / "report.html"

    @property
    def log(self) -> Path:
        """What was said while it was made."""
        return self.folder / "log.txt"

    def settings(self) -> dict[str, object]:
        """The tables of config.toml.

        Raises:
            UsageError: the file is missing or is not TOML.
        """
        return read_toml(self.config)

    @property
    def task(self) -> str | None:
        """The task in config.toml; None where there is no readable one."""
        try:
            task = self.settings().get("task")
        except UsageError:
            return None
        return task if isinstance(task, str) else None


def create_run(root: Path, name: str, settings: Mapping[str, object]) -> Run:
    """Make the folder of a run and write its config.toml; ``settings`` holds ``task`` at least.

    A run of that name is taken up again: its other files stay.

    Raises:
        UsageError: the name is no plain folder name, or the folder cannot be written.
    """
    run = Run(root / checked_name(name))
    write_whole(run.config, toml_text(settings))
    return run


def comparison_folder(root: Path, identifier: str) -> Run:
    """The folder of a comparison, ``compare-<identifier>``; it holds results and report only."""
    return Run(root / checked_name(f"{COMPARISON_PREFIX}{identifier}"))


def checked_name(name: str) -> str:
    """The name, if it is a plain folder name.

    Raises:
        UsageError: it is empty, hidden, a path, or holds odd characters.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}", name):
        raise UsageError(
            f"{name!r} is no name for a run",
            remedy="use letters, digits, '.', '_', '+' and '-', at most 100 of them",
        )
    return name


def find_run(root: Path, name: str) -> Run:
    """The run of that name.

    Raises:
        UsageError: there is none; the message lists those there are.
    """
    run = Run(root / checked_name(name))
    if not run.folder.is_dir():
        known = ", ".join(sorted(other.name for other in all_runs(root))) or "none yet"
        raise UsageError(
            f"there is no run {name!r}", where=str(root), remedy=f"runs there are: {known}"
        )
    return run


def all_runs(root: Path) -> list[Run]:
    """Every run and comparison under ``root``, the one last written to first."""
    if not root.is_dir():
        return []
    folders = (path for path in root.iterdir() if path.is_dir() and path.name[0] != ".")
    return sorted((Run(folder) for folder in folders), key=_last_written, reverse=True)


def newest_run(root: Path, *tasks: str) -> Run | None:
    """The run of such a task whose model was trained (or brought) last; None if there is none."""
    trained = [run for run in all_runs(root) if _has_model(run) and run.task in tasks]
    return max(trained, key=_model_written, default=None)


def newest_results(root: Path) -> Run:
    """The run or comparison with the newest results.json.

    Raises:
        UsageError: nothing was measured yet.
    """
    measured = [run for run in all_runs(root) if run.results.is_file()]
    if not measured:
        raise UsageError(
            "nothing was measured yet",
            where=str(root),
            remedy="`entrain demo` or `entrain compare` measures and writes results.json there",
        )
    return max(measured, key=lambda run: run.results.stat().st_mtime_ns)


def _has_model(run: Run) -> bool:
    return run.checkpoint.is_file() or run.onnx.is_file()


def _model_written(run: Run) -> int:
    model = run.checkpoint if run.checkpoint.is_file() else run.onnx
    return model.stat().st_mtime_ns


def _last_written(run: Run) -> int:
    files = [path.stat().st_mtime_ns for path in run.folder.iterdir() if path.is_file()]
    return max(files, default=run.folder.stat().st_mtime_ns)
