"""Subject-verb agreement: from sentences to a trained network and its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention.freezing import freeze_values
from entrain.models.data.agreement import AgreementData, Sentences
from entrain.models.networks.agreement import AgreementConfig, AgreementNetwork
from entrain.models.prediction import predicted_classes
from entrain.models.training import EpochReport, TrainingConfig, fit, reproducible

_EVALUATION_BATCH = 2000

# The paper's: AdamW, cosine from the first step to zero, no warm-up, no smoothing.
RECIPE = TrainingConfig(
    epochs=20,
    warmup_epochs=0,
    peak_rate=5e-4,
    weight_decay=1e-4,
    batch=64,
    label_smoothing=0.0,
    clip=1.0,
)


@dataclass(frozen=True, eq=False)
class TrainedAgreement:
    """A trained agreement network and what it needs to be used and judged.

    Args:
        network: in evaluation mode.
        config: its sizes and attention.
        training: how it was trained.
        labels: in the order of the logits.
        vocabulary: the words, in the order of the tokens.
        source: where the sentences came from.
        history: one report an epoch.
        validation_accuracy: of the weights that were kept, on all sentences, in [0, 1].
        interrupted: whether Ctrl-C ended the training.
    """

    network: AgreementNetwork
    config: AgreementConfig
    training: TrainingConfig
    labels: tuple[str, ...]
    vocabulary: tuple[str, ...]
    source: str
    history: tuple[EpochReport, ...]
    validation_accuracy: float
    interrupted: bool


def train_agreement(
    data: AgreementData,
    config: AgreementConfig,
    training: TrainingConfig,
    on_epoch: Callable[[EpochReport], None],
    snapshot: Path | None = None,
    *,
    frozen_values: bool = False,
) -> TrainedAgreement:
    """Train an agreement network. The same data, settings and seed give the same weights.

    Args:
        data: training and validation sentences are used.
        config: its vocabulary and length must be those of the data.
        training: schedule and seed; `RECIPE` is the paper's.
        on_epoch: called after every epoch.
        snapshot: a file to keep the training in, so that it can go on; see `fit`.
        frozen_values: keep the attention's value maps as they were drawn: the paper's ablation.

    Raises:
        UsageError: if the network does not fit the data, or has no value map to freeze.
        TrainingDiverged: if the loss is no longer a number.
        CheckpointError: if the snapshot is damaged or of another training.
        KeyboardInterrupt: if interrupted before the first epoch was over; later, the best weights
            so far are returned.
    """
    _check_fit(data, config)
    with reproducible(training.seed):
        network = config.build()
    if frozen_values:
        freeze_values(network)
    result = fit(
        network,
        shuffled_sentences(data.train, training),
        lambda trained: accuracy(evaluate(trained, data.validation.tokens), data.validation),
        training,
        on_epoch,
        snapshot,
    )
    return TrainedAgreement(
        network=network,
        config=config,
        training=training,
        labels=data.labels,
        vocabulary=data.vocabulary,
        source=data.source,
        history=result.history,
        validation_accuracy=result.validation,
        interrupted=result.interrupted,
    )


def shuffled_sentences(
    sentences: Sentences, training: TrainingConfig
) -> Callable[[int], Iterator[tuple[Tensor, Tensor]]]:
    """All sentences in a new order for each epoch, for `fit`; the last batch may be smaller."""

    def epoch_batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        source = torch.Generator().manual_seed((training.seed << 20) + epoch)
        order = torch.randperm(len(sentences), generator=source)
        tokens = torch.split(sentences.tokens[order], training.batch)
        targets = torch.split(sentences.targets[order], training.batch)
        return zip(tokens, targets, strict=True)

    return epoch_batches


def evaluate(network: nn.Module, tokens: Tensor) -> Tensor:
    """The class that the network scores highest for each of tokens [N, length]: int64 [N]."""
    return predicted_classes(network, tokens, _EVALUATION_BATCH)


def accuracy(predictions: Tensor, sentences: Sentences) -> float:
    """The share of predictions int64 [N] that are right, in [0, 1]."""
    return float((predictions == sentences.targets).double().mean())


def hard_accuracy(predictions: Tensor, sentences: Sentences) -> float:
    """The share of the hard sentences that are right, in [0, 1].

    Raises:
        UsageError: if no sentence is hard.
    """
    if not bool(sentences.hard.any()):
        raise UsageError("none of these sentences is hard")
    right = predictions == sentences.targets
    return float(right[sentences.hard].double().mean())


def _check_fit(data: AgreementData, config: AgreementConfig) -> None:
    length = data.train.tokens.shape[1]
    if (config.vocabulary, config.length) != (len(data.vocabulary), length):
        raise UsageError(
            f"the sentences have {length} words of a vocabulary of {len(data.vocabulary)}, "
            f"the network takes {config.length} of {config.vocabulary}"
        )
