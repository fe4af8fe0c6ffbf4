"""Keyword spotting: from clips to a trained network and its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention.freezing import freeze_values
from entrain.models.augmentation import (
    Augmentation,
    mask_features,
    shuffled_batches,
    vary_sound,
)
from entrain.models.data import Clips, KeywordData
from entrain.models.data.speech import UNKNOWN
from entrain.models.features import BANDS, FRAMES
from entrain.models.front_end import log_mel
from entrain.models.networks import NetworkConfig
from entrain.models.prediction import predicted_classes
from entrain.models.scrambling import scramble
from entrain.models.training import EpochReport, TrainingConfig, fit, reproducible

_EVALUATION_BATCH = 256


class KeywordSettings(NetworkConfig, Protocol):
    """What a keyword network's configuration answers, whatever the network.

    The network takes features [B, 1, frames, bands] and gives logits [B, classes].
    """

    @property
    def classes(self) -> int:
        """Number of words."""

    @property
    def frames(self) -> int:
        """Time steps of the features."""

    @property
    def bands(self) -> int:
        """Mel bands of the features."""


Settings = TypeVar("Settings", bound=KeywordSettings)


@dataclass(frozen=True, eq=False)
class FeatureStatistics:
    """Mean and deviation of each band over the clean training clips.

    Args:
        mean: float32 [40].
        deviation: float32 [40], positive.
    """

    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]

    def normalise(self, features: Tensor) -> Tensor:
        """Features [..., 40] less the mean, over the deviation."""
        return (features - torch.from_numpy(self.mean)) / torch.from_numpy(self.deviation)


@dataclass(frozen=True, eq=False)
class TrainedKeyword(Generic[Settings]):
    """A trained keyword network and what it needs to be used and judged.

    Args:
        network: in evaluation mode.
        config: its sizes and attention.
        training: how it was trained.
        statistics: normalise the features.
        labels: the words, in the order of the logits.
        source: where the clips came from.
        history: one report an epoch.
        validation_accuracy: of the weights that were kept, in [0, 1].
        interrupted: whether Ctrl-C ended the training.
    """

    network: nn.Module
    config: Settings
    training: TrainingConfig
    statistics: FeatureStatistics
    labels: tuple[str, ...]
    source: str
    history: tuple[EpochReport, ...]
    validation_accuracy: float
    interrupted: bool


def feature_statistics(clips: Clips) -> FeatureStatistics:
    """Mean and deviation of each band of these clips' features."""
    features = log_mel(clips.samples).reshape(-1, BANDS)
    deviation = features.std(axis=0, dtype=np.float64)
    return FeatureStatistics(
        mean=features.mean(axis=0, dtype=np.float64).astype(np.float32),
        deviation=np.maximum(deviation, np.finfo(np.float32).eps).astype(np.float32),
    )


def prepare(clips: Clips, statistics: FeatureStatistics) -> Tensor:
    """Normalised features of clips as they are, float32 [N, 1, 49, 40]."""
    return statistics.normalise(torch.from_numpy(log_mel(clips.samples))).unsqueeze(1)


def augmented_batches(
    data: KeywordData,
    statistics: FeatureStatistics,
    config: TrainingConfig,
    augmentation: Augmentation = Augmentation(),  # noqa: B008 - frozen
) -> Callable[[int], Iterator[tuple[Tensor, Tensor]]]:
    """Fresh variations of the training clips for each epoch, for `fit`.

    Args:
        data: its training clips and background noise are used; a clip that is cut or scrambled
            becomes one of an unknown word.
        statistics: of the clean training clips.
        config: its batch size and seed; an epoch's batches depend on the seed and the epoch only.
        augmentation: how the clips are varied.

    Returns:
        From the epoch's number to batches of features [B, 1, 49, 40] and targets [B].
    """

    def epoch_batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        random = np.random.default_rng((config.seed, epoch))
        for indices in shuffled_batches(data.train, config.batch, random):
            samples, targets = data.train.samples[indices], data.train.targets[indices]
            mixed = scramble(samples, targets, augmentation.scrambled, random)
            varied = vary_sound(mixed.samples, data.background, augmentation, random)
            features = statistics.normalise(torch.from_numpy(log_mel(varied.samples)))
            masked = mask_features(features, augmentation, random)
            is_lost = mixed.is_scrambled | varied.is_cut
            if is_lost.any():
                targets = np.where(is_lost, data.labels.index(UNKNOWN), targets)
            yield masked.unsqueeze(1), torch.from_numpy(targets)

    return epoch_batches


def evaluate(network: nn.Module, features: Tensor) -> NDArray[np.int64]:
    """The class that the network scores highest for each of features [N, 1, 49, 40]: int64 [N]."""
    predictions: NDArray[np.int64] = predicted_classes(network, features, _EVALUATION_BATCH).numpy()
    return predictions


def accuracy(predictions: NDArray[np.int64], targets: NDArray[np.int64]) -> float:
    """The share of predictions that are right, in [0, 1]."""
    return float((predictions == targets).mean())


def train_keyword(
    data: KeywordData,
    network_config: Settings,
    training_config: TrainingConfig,
    on_epoch: Callable[[EpochReport], None],
    snapshot: Path | None = None,
    augmentation: Augmentation = Augmentation(),  # noqa: B008 - frozen
    *,
    frozen_values: bool = False,
) -> TrainedKeyword[Settings]:
    """Train a keyword network. The same data, settings and seed give the same weights, bit for bit.

    Args:
        data: train and validation clips are used.
        network_config: its classes must be those of the data.
        training_config: schedule and seed.
        on_epoch: called after every epoch.
        snapshot: a file to keep the training in, so that it can go on; see `fit`.
        augmentation: how the training clips are varied.
        frozen_values: keep the attention's value maps as they were drawn: the paper's ablation.

    Raises:
        UsageError: if the network does not fit the data's labels or the features, or has no value
            map to freeze.
        TrainingDiverged: if the loss is no longer a number.
        CheckpointError: if the snapshot is damaged or of another training.
        KeyboardInterrupt: if interrupted before the first epoch was over; later, the best weights
            so far are returned.
    """
    _check_fit(data, network_config)
    with reproducible(training_config.seed):
        network = network_config.build()
        if frozen_values:
            freeze_values(network)
        statistics = feature_statistics(data.train)
        validation = prepare(data.validation, statistics)
    result = fit(
        network,
        augmented_batches(data, statistics, training_config, augmentation),
        lambda trained: accuracy(evaluate(trained, validation), data.validation.targets),
        training_config,
        on_epoch,
        snapshot,
    )
    return TrainedKeyword(
        network=network,
        config=network_config,
        training=training_config,
        statistics=statistics,
        labels=data.labels,
        source=data.source,
        history=result.history,
        validation_accuracy=result.validation,
        interrupted=result.interrupted,
    )


def _check_fit(data: KeywordData, config: KeywordSettings) -> None:
    if config.classes != len(data.labels):
        raise UsageError(
            f"the network has {config.classes} classes, the data {len(data.labels)}: "
            f"{', '.join(data.labels)}"
        )
    if (config.frames, config.bands) != (FRAMES, BANDS):
        raise UsageError(
            f"the features are {FRAMES}x{BANDS}, the network takes {config.frames}x{config.bands}"
        )
