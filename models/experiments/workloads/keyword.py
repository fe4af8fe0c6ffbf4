"""Keyword spotting: any mechanism in two networks, and probes of what it relies on.

The first paper's protocol (section 4.1 and its appendix on robustness): frames of the trained
network shuffled, the value map frozen, noise on couplings and states. It reports validation
accuracy; here the test set is the measure, and the last epoch's weights are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.deploy.statistics import balanced_accuracy, confusion_matrix
from entrain.models.attention import AttentionConfig
from entrain.models.attention.settling import disturbed
from entrain.models.augmentation import Augmentation
from entrain.models.choices import check_choice
from entrain.models.data import KeywordData
from entrain.models.data.speech import load_speech_commands
from entrain.models.data.synthetic_speech import WORDS, synthetic_speech
from entrain.models.experiments.workload import Outcome, Place
from entrain.models.experiments.workloads.recipe import TrainedWorkload
from entrain.models.keyword_task import (
    KeywordSettings,
    TrainedKeyword,
    accuracy,
    evaluate,
    prepare,
    train_keyword,
)
from entrain.models.networks.keyword import KeywordConfig
from entrain.models.networks.linear_keyword import LinearKeywordConfig
from entrain.models.placing import Centred
from entrain.models.training import EpochReport, TrainingConfig, reproducible

# How many permutations of the frames, and draws of the noise, a probe averages over.
SHUFFLES = 3
NOISE_DRAWS = 5
NOISES = (0.2, 0.5)
# Width of the feed-forward layer, in widths of a token.
FEED = 4

AUGMENTATIONS: dict[str, Augmentation] = {
    "varied": Augmentation(),
    "none": Augmentation(
        speed=(1.0, 1.0),
        placing=Centred(0.0),
        gain=(0.0, 0.0),
        noise_probability=0.0,
        masked_bands=0,
        masked_frames=0,
    ),
}


@dataclass(frozen=True)
class Keyword(TrainedWorkload):
    """Train a keyword network, test it, probe it.

    The data is a folder in the layout of Speech Commands; without one, synthetic speech, whose
    results say nothing about real speech.

    Args:
        network: a name of `NETWORKS`.
        attention: slug of the mechanism.
        positions: ``none``, ``sinusoidal`` or ``learned``; the convolutional network has learned
            ones only.
        width: of a token; None for the network's own.
        frozen_values: whether the value map keeps its random start.
        words: the words to tell apart.
        augmentation: a name of `AUGMENTATIONS`.
        label_smoothing: as the fields of `TrainedWorkload`, of `TrainingConfig`.
    """

    network: str = "convolutional"
    attention: str = "softmax"
    positions: str = "learned"
    width: int | None = None
    frozen_values: bool = False
    words: tuple[str, ...] = WORDS
    augmentation: str = "varied"
    label_smoothing: float = TrainingConfig.label_smoothing

    def __post_init__(self) -> None:
        for name, value, known in (
            ("network", self.network, NETWORKS),
            ("augmentation", self.augmentation, AUGMENTATIONS),
        ):
            check_choice(name, value, known)
        # Settings that make no sense are told before anything is trained.
        self.settings(len(self.words))
        self.training(0)

    def settings(self, classes: int) -> KeywordSettings:
        """The network's configuration for so many words."""
        return NETWORKS[self.network](self, classes)

    def training(self, seed: int) -> TrainingConfig:
        """How the network is trained with this seed."""
        recipe = super().training(seed)
        return replace(recipe, label_smoothing=self.label_smoothing)

    def measure(self, seed: int, place: Place, on_epoch: Callable[[EpochReport], None]) -> Outcome:
        """Train with this seed, test and probe; accuracies in per cent.

        Raises:
            DataError: the folder or a word is missing.
            TrainingDiverged: the loss is no longer a number.
            KeyboardInterrupt: interrupted; the snapshot has what was done.
        """
        data = load_words(place.data, self.words)
        trained = train_keyword(
            data,
            self.settings(len(data.labels)),
            self.training(seed),
            on_epoch,
            place.snapshot,
            AUGMENTATIONS[self.augmentation],
            frozen_values=self.frozen_values,
        )
        if trained.interrupted:
            raise KeyboardInterrupt
        # On one thread, as it was trained.
        with reproducible(seed):
            return outcome(trained, data)


@cache
def load_words(folder: Path | None, words: tuple[str, ...]) -> KeywordData:
    """The clips of these words in the folder; without a folder, synthetic ones."""
    return synthetic_speech(words) if folder is None else load_speech_commands(folder, words)


def outcome(trained: TrainedKeyword[KeywordSettings], data: KeywordData) -> Outcome:
    """What a training came to: figures of the test clips, probes, and curves by epoch."""
    features, targets = prepare(data.test, trained.statistics), data.test.targets
    predictions = evaluate(trained.network, features)
    confusion = confusion_matrix(targets, predictions, len(data.labels))
    validation = tuple(100 * report.validation for report in trained.history)
    metrics = {
        "accuracy": 100 * accuracy(predictions, targets),
        "balanced_accuracy": 100 * balanced_accuracy(confusion),
        "validation": validation[-1],
        "validation_best": max(validation),
        "frames_shuffled": shuffled_accuracy(trained.network, features, targets),
    }
    if trained.config.attention.mechanism == "oscillator":
        metrics |= noisy_accuracies(trained.network, features, targets)
    loss = tuple(report.loss for report in trained.history)
    return Outcome(metrics, {"loss": loss, "validation": validation})


def shuffled_accuracy(network: nn.Module, features: Tensor, targets: NDArray[np.int64]) -> float:
    """Accuracy in per cent where the frames of all clips stand in one other order.

    The mean over `SHUFFLES` orders. What a network loses here, it had from the order.
    """
    shares = []
    for seed in range(SHUFFLES):
        order = np.random.default_rng(seed).permutation(features.shape[2])
        shares.append(accuracy(evaluate(network, features[:, :, order]), targets))
    return 100 * float(np.mean(shares))


def noisy_accuracies(
    network: nn.Module, features: Tensor, targets: NDArray[np.int64]
) -> Mapping[str, float]:
    """Accuracy in per cent with noise on all couplings, or on all states, of every clip.

    The deviations are `NOISES`, as exponents of a factor on each coupling and in each coordinate of
    a state; each figure is the mean over `NOISE_DRAWS` draws.
    """

    def noisy(coupling_noise: float, state_noise: float) -> float:
        shares = []
        for seed in range(NOISE_DRAWS):
            with disturbed(
                network, coupling_noise=coupling_noise, state_noise=state_noise, seed=seed
            ):
                shares.append(accuracy(evaluate(network, features), targets))
        return 100 * float(np.mean(shares))

    return {
        f"{kind}_noise_{round(100 * level)}": noisy(*noises)
        for level in NOISES
        for kind, noises in (("coupling", (level, 0.0)), ("state", (0.0, level)))
    }


def _convolutional(workload: Keyword, classes: int) -> KeywordSettings:
    if workload.positions != "learned":
        raise UsageError(
            f"the convolutional network has learned positions, not {workload.positions!r}",
            remedy="Leave positions out, or choose the linear network.",
        )
    width = KeywordConfig.d_model if workload.width is None else workload.width
    attention = AttentionConfig.parse(workload.attention)
    return KeywordConfig(attention, classes=classes, d_model=width, d_feed=FEED * width)


def _linear(workload: Keyword, classes: int) -> KeywordSettings:
    width = LinearKeywordConfig.d_model if workload.width is None else workload.width
    return LinearKeywordConfig(
        AttentionConfig.parse(workload.attention),
        classes=classes,
        d_model=width,
        d_feed=FEED * width,
        positions=workload.positions,
    )


NETWORKS: dict[str, Callable[[Keyword, int], KeywordSettings]] = {
    "convolutional": _convolutional,
    "linear": _linear,
}
