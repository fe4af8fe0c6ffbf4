"""What an experiment trains and measures: the contract between its file and its task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from entrain.models.training import EpochReport


@dataclass(frozen=True)
class Outcome:
    """What one training of one variant came to.

    Args:
        metrics: final figures by name, such as ``hard`` or ``perplexity``.
        curves: figures in a row by name: one a layer, an epoch or a step.
    """

    metrics: Mapping[str, float]
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where a training reads and writes.

    Args:
        data: the folder the user named with ``--data-dir``; None for the built-in data.
        snapshot: a file for `training.fit` to keep the training in, so that it can go on.
    """

    data: Path | None
    snapshot: Path | None = None


class Workload(Protocol):
    """A task of the papers with all its settings: a frozen dataclass, its fields the settings.

    An experiment's TOML gives the fields by name; they are checked by type when it is read.
    """

    def measure(self, seed: int, place: Place, on_epoch: Callable[[EpochReport], None]) -> Outcome:
        """Train with this seed and measure. The same settings, data and seed: the same outcome.

        Raises:
            DataError: the data is missing or damaged, with where to get it.
            TrainingDiverged: the loss is no longer a number.
        """
        ...
