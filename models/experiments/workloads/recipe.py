"""The recipe by which a workload trains its network."""

from __future__ import annotations

from dataclasses import dataclass

from entrain.models.training import TrainingConfig


@dataclass(frozen=True)
class TrainedWorkload:
    """A workload that trains a network. What its task does not set otherwise is `TrainingConfig`'s.

    Args:
        epochs: as the fields below, of `TrainingConfig`.
    """

    epochs: int = TrainingConfig.epochs
    warmup_epochs: int = TrainingConfig.warmup_epochs
    peak_rate: float = TrainingConfig.peak_rate
    weight_decay: float = TrainingConfig.weight_decay
    batch: int = TrainingConfig.batch

    def training(self, seed: int) -> TrainingConfig:
        """How the network is trained with this seed."""
        return TrainingConfig(
            epochs=self.epochs,
            warmup_epochs=self.warmup_epochs,
            peak_rate=self.peak_rate,
            weight_decay=self.weight_decay,
            batch=self.batch,
            seed=seed,
        )
