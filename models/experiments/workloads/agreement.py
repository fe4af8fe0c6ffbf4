"""Subject-verb agreement: any mechanism in the first paper's network (its table 2).

Its recipe too: AdamW, cosine from the first step, no warm-up. What differs from the authors' code:
sentences stand without begin and end marks and are aligned on the right, where their padding is
visible; two logits and the cross entropy in place of one logit, which is the same model with more
parameters; biased maps to queries, keys and values; weight decay on matrices only. They report the
4,000 validation sentences; here the 4,000 test sentences of the same templates are the measure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from entrain.models.agreement_task import (
    RECIPE,
    TrainedAgreement,
    accuracy,
    evaluate,
    hard_accuracy,
    train_agreement,
)
from entrain.models.attention import AttentionConfig
from entrain.models.data.agreement import (
    LENGTH,
    VOCABULARY,
    AgreementData,
    generate_agreement,
    load_agreement,
)
from entrain.models.experiments.workload import Outcome, Place
from entrain.models.experiments.workloads.recipe import TrainedWorkload
from entrain.models.networks.agreement import AgreementConfig
from entrain.models.networks.block import BlockStyle
from entrain.models.training import EpochReport, TrainingConfig


@dataclass(frozen=True)
class Agreement(TrainedWorkload):
    """Train an agreement network and test it on all and on the hard sentences.

    The data is a folder as `load_agreement` reads it; without one, the paper's sentences.

    Args:
        attention: slug of the mechanism.
        d_model: as the fields below up to positions, of `AgreementConfig`.
        dropout: after the positions and in the blocks.
        norm: as activation, of `BlockStyle`.
        frozen_values: whether the value maps keep their random start.
        epochs: as the fields below, of `TrainingConfig`; the paper's.
    """

    attention: str = "softmax"
    d_model: int = AgreementConfig.d_model
    heads: int = AgreementConfig.heads
    layers: int = AgreementConfig.layers
    d_feed: int = AgreementConfig.d_feed
    positions: str = AgreementConfig.positions
    dropout: float = AgreementConfig.dropout
    norm: str = "layer"
    activation: str = "gelu"
    frozen_values: bool = False
    epochs: int = RECIPE.epochs
    warmup_epochs: int = RECIPE.warmup_epochs
    peak_rate: float = RECIPE.peak_rate
    weight_decay: float = RECIPE.weight_decay
    batch: int = RECIPE.batch
    label_smoothing: float = RECIPE.label_smoothing

    def __post_init__(self) -> None:
        # Settings that make no sense are told before anything is trained.
        self.network()
        self.training(0)

    def network(self) -> AgreementConfig:
        """The network's configuration."""
        return AgreementConfig(
            AttentionConfig.parse(self.attention),
            vocabulary=len(VOCABULARY),
            length=LENGTH,
            d_model=self.d_model,
            heads=self.heads,
            layers=self.layers,
            d_feed=self.d_feed,
            positions=self.positions,
            dropout=self.dropout,
            style=BlockStyle(self.norm, self.activation, self.dropout),
        )

    def training(self, seed: int) -> TrainingConfig:
        """How the network is trained with this seed."""
        recipe = super().training(seed)
        return replace(recipe, label_smoothing=self.label_smoothing)

    def measure(self, seed: int, place: Place, on_epoch: Callable[[EpochReport], None]) -> Outcome:
        """Train with this seed and test the last epoch's weights; accuracies in per cent.

        Raises:
            DataError: as `train` does, and UsageError, TrainingDiverged and KeyboardInterrupt.
        """
        return outcome(*self.train(seed, place, on_epoch))

    def train(
        self, seed: int, place: Place, on_epoch: Callable[[EpochReport], None]
    ) -> tuple[TrainedAgreement, AgreementData]:
        """Train with this seed; the network, and the data it was trained on.

        Raises:
            DataError: the folder or a line is not as it should be.
            UsageError: values are to be frozen, but the mechanism has none.
            TrainingDiverged: the loss is no longer a number.
            KeyboardInterrupt: interrupted; the snapshot has what was done.
        """
        data = read_sentences(place.data)
        trained = train_agreement(
            data,
            self.network(),
            self.training(seed),
            on_epoch,
            place.snapshot,
            frozen_values=self.frozen_values,
        )
        if trained.interrupted:
            raise KeyboardInterrupt
        return trained, data


@cache
def read_sentences(folder: Path | None) -> AgreementData:
    """The sentences of a folder; without one, the paper's."""
    return generate_agreement() if folder is None else load_agreement(folder)


def outcome(trained: TrainedAgreement, data: AgreementData) -> Outcome:
    """What a training came to: figures of the test sentences, and curves by epoch."""
    predictions = evaluate(trained.network, data.test.tokens)
    validation = tuple(100 * report.validation for report in trained.history)
    return Outcome(
        {
            "hard": 100 * hard_accuracy(predictions, data.test),
            "all": 100 * accuracy(predictions, data.test),
            "validation": validation[-1],
        },
        {"loss": tuple(report.loss for report in trained.history), "validation": validation},
    )
