"""A small workload for the tests of the runner: a real training, of three weights.

It stands in a module of its own, since worker processes import it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from entrain.deploy.errors import DataError, TrainingDiverged
from entrain.models.experiments.workload import Outcome, Place
from entrain.models.training import EpochReport, TrainingConfig, fit, reproducible


@dataclass(frozen=True)
class Fitting:
    """Tell apart points on the two sides of a plane.

    Args:
        slope: of the plane.
        epochs: of training.
        killed_once: a file; the process is killed after the second epoch unless it is there.
        interrupted_once: likewise, by Ctrl-C.
        swallows: what Ctrl-C raises there, as a library's callback may.
        fails_with_seed: this seed diverges.
        breaks_with_seed: this seed meets a bug.
        needs_data: there is no built-in data.
        layers: a setting that is a list.
    """

    slope: float = 1.0
    epochs: int = 4
    killed_once: str = ""
    interrupted_once: str = ""
    swallows: bool = False
    fails_with_seed: int | None = None
    breaks_with_seed: int | None = None
    needs_data: bool = False
    layers: tuple[int, ...] = (3, 2)

    def measure(self, seed: int, place: Place, on_epoch: Callable[[EpochReport], None]) -> Outcome:
        if self.needs_data and place.data is None:
            raise DataError("there is no data", remedy="name it with --data-dir")
        if seed == self.fails_with_seed:
            raise TrainingDiverged("the loss is no number", remedy="lower the rate")
        if seed == self.breaks_with_seed:
            raise ZeroDivisionError("a bug")
        with reproducible(seed):
            inputs = torch.randn(64, 3)
            network = nn.Linear(3, 2)
        targets = (inputs[:, 0] * self.slope + inputs[:, 1] > 0).long()

        def told(report: EpochReport) -> None:
            on_epoch(report)
            if report.epoch == 2:
                self._interrupt(self.killed_once, signal.SIGKILL)
                with contextlib.suppress(*[BaseException] * self.swallows):
                    self._interrupt(self.interrupted_once, signal.SIGINT)

        result = fit(
            network,
            lambda _epoch: [(inputs, targets)],
            lambda trained: (trained(inputs).argmax(1) == targets).double().mean().item(),
            TrainingConfig(epochs=self.epochs, seed=seed),
            told,
            place.snapshot,
        )
        losses = tuple(report.loss for report in result.history)
        metrics = {"hard": 100 * result.history[-1].validation, "loss": losses[-1]}
        return Outcome(metrics, {"losses": losses})

    @staticmethod
    def _interrupt(marker: str, number: int) -> None:
        if marker and not Path(marker).exists():
            Path(marker).touch()
            os.kill(os.getpid(), number)
