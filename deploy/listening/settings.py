"""What a spotter goes by beside its network: listening.toml in a run's folder."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from entrain.deploy.errors import UsageError
from entrain.deploy.files import write_whole
from entrain.deploy.runs import Run
from entrain.deploy.toml import place, read_toml, toml_text
from entrain.models.data.clips import FULL_SCALE, SAMPLE_RATE
from entrain.models.features import HOP

SCORE_ONE = 1_000_000  # scores are millionths
FRAME_SECONDS = HOP / SAMPLE_RATE
UNTUNED_THRESHOLD = 0.8
UNTUNED_REFRACTORY = 1.0

Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=60)]


class SpotterSettings(BaseModel):
    """How decisions are made.

    Attributes:
        tuned_for: SHA-256 of the model.onnx that the thresholds were chosen for; empty: not tuned.
        hop_frames: from one inference to the next, in frames of 20 ms.
        smoothed_hops: over how many hops scores are averaged.
        gate_decibels: the loudest 20 ms of the last second, in decibels of full scale, below
            which the network does not run.
        thresholds: of each word's smoothed score.
        refractory_seconds: after it was heard, for how long a word is not heard again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tuned_for: str = ""
    hop_frames: Annotated[int, Field(ge=1, le=49)] = 6
    smoothed_hops: Annotated[int, Field(ge=1, le=32)] = 5
    gate_decibels: Annotated[float, Field(ge=-100, le=0)] = -60.0
    thresholds: dict[str, Share]
    refractory_seconds: dict[str, Seconds]

    @model_validator(mode="after")
    def _same_words(self) -> SpotterSettings:
        if list(self.thresholds) != list(self.refractory_seconds) or not self.thresholds:
            raise ValueError("thresholds and refractory_seconds are of different words")
        return self

    @property
    def words(self) -> tuple[str, ...]:
        """What is spotted, in the order of the network's classes."""
        return tuple(self.thresholds)

    @property
    def hop_samples(self) -> int:
        """Samples from one inference to the next."""
        return self.hop_frames * HOP

    @property
    def hop_seconds(self) -> float:
        """The same in seconds."""
        return self.hop_samples / SAMPLE_RATE

    @property
    def threshold_millionths(self) -> tuple[int, ...]:
        """Thresholds as the C has them."""
        return tuple(round(SCORE_ONE * value) for value in self.thresholds.values())

    @property
    def refractory_hops(self) -> tuple[int, ...]:
        """Refractory times as the C has them."""
        return tuple(round(each / self.hop_seconds) for each in self.refractory_seconds.values())

    @property
    def gate(self) -> int:
        """The gate as the C has it: a mean square of 16-bit samples."""
        return round(FULL_SCALE**2 * 10 ** (self.gate_decibels / 10))


def untuned(words: tuple[str, ...]) -> SpotterSettings:
    """Where nothing was tuned: the same for every word, and cautious."""
    return SpotterSettings(
        thresholds=dict.fromkeys(words, UNTUNED_THRESHOLD),
        refractory_seconds=dict.fromkeys(words, UNTUNED_REFRACTORY),
    )


def settings_path(run: Run) -> Path:
    """Where a run's settings stand."""
    return run.folder / "listening.toml"


def write_settings(run: Run, settings: SpotterSettings) -> None:
    """Write listening.toml, whole."""
    write_whole(settings_path(run), toml_text(settings.model_dump()))


def read_settings(run: Run, words: tuple[str, ...]) -> SpotterSettings:
    """A run's settings; those of nothing tuned where there is no listening.toml.

    Args:
        run: the run.
        words: what its network spots.

    Raises:
        UsageError: listening.toml is damaged, of other words, or was tuned for another network.
    """
    path = settings_path(run)
    if not path.is_file():
        return untuned(words)
    try:
        settings = SpotterSettings.model_validate(read_toml(path))
    except ValidationError as error:
        first = error.errors()[0]
        keys = [str(key) for key in first["loc"]]
        raise UsageError(
            f"{'.'.join(keys) or 'settings'}: {first['msg']}", where=place(path, keys)
        ) from error
    again = f"tune it again: entrain tune --run {run.name}"
    if settings.words != words:
        raise UsageError(
            f"it is of {', '.join(settings.words)}, and the network spots {', '.join(words)}",
            where=str(path),
            remedy=again,
        )
    if settings.tuned_for and settings.tuned_for != digest_of(run):
        raise UsageError(
            "it was tuned for another network than the run holds now", where=str(path), remedy=again
        )
    return settings


def digest_of(run: Run) -> str:
    """SHA-256 of the run's model.onnx."""
    return hashlib.sha256(run.onnx.read_bytes()).hexdigest()
