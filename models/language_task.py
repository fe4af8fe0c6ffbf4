"""Word-level language models: from a text to a trained network and its perplexity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.data.text import PADDING, TextData, Words, chunks
from entrain.models.networks.language import LanguageConfig, LanguageNetwork
from entrain.models.training import EpochReport, TrainingConfig, fit, reproducible

_EVALUATION_BATCH = 64
_NOT_COUNTED = -100


@dataclass(frozen=True, eq=False)
class TrainedLanguage:
    """A trained language model.

    Args:
        network: in evaluation mode.
        config: its sizes and attention.
        training: how it was trained.
        history: one report an epoch; `validation` is the negative mean loss in nats a word.
        interrupted: whether Ctrl-C ended the training.
    """

    network: LanguageNetwork
    config: LanguageConfig
    training: TrainingConfig
    history: tuple[EpochReport, ...]
    interrupted: bool


def inputs_and_targets(pieces: Words) -> tuple[Tensor, Tensor]:
    """Words and the words that follow, each int64 [N, T - 1], of pieces [N, T].

    Padding is no target. It stands behind the text only, where no causal network looks.
    """
    words = torch.from_numpy(pieces)
    targets = words[:, 1:]
    return words[:, :-1], targets.masked_fill(targets == PADDING, _NOT_COUNTED)


def shuffled_pieces(
    pieces: Words, config: TrainingConfig
) -> Callable[[int], Iterator[tuple[Tensor, Tensor]]]:
    """The pieces in a new order each epoch, for `fit`; it depends on seed and epoch only."""
    inputs, targets = inputs_and_targets(pieces)

    def epoch_batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        random = np.random.default_rng((config.seed, epoch))
        order = torch.from_numpy(random.permutation(len(inputs)))
        for chosen in torch.split(order, config.batch):
            yield inputs[chosen], targets[chosen]

    return epoch_batches


@torch.no_grad()
def mean_loss(network: nn.Module, pieces: Words) -> float:
    """The mean cross entropy in nats over all words of the pieces [N, T] but the first of each."""
    network.eval()
    total, count = 0.0, 0
    inputs, targets = inputs_and_targets(pieces)
    for batch, wanted in zip(
        torch.split(inputs, _EVALUATION_BATCH), torch.split(targets, _EVALUATION_BATCH), strict=True
    ):
        losses = F.cross_entropy(
            network(batch).flatten(0, 1),
            wanted.flatten(),
            ignore_index=_NOT_COUNTED,
            reduction="sum",
        )
        total += losses.item()
        count += int((wanted != _NOT_COUNTED).sum())
    return total / count


def perplexity(network: nn.Module, pieces: Words) -> float:
    """Exp of the mean loss; see `mean_loss`."""
    return math.exp(mean_loss(network, pieces))


def train_language(
    data: TextData,
    config: LanguageConfig,
    training: TrainingConfig,
    on_epoch: Callable[[EpochReport], None],
    snapshot: Path | None = None,
) -> TrainedLanguage:
    """Train a language model. The same data, settings and seed give the same weights.

    Args:
        data: its training and validation parts are used, in pieces of the network's context.
        config: its vocabulary must be that of the data.
        training: schedule and seed; `batch` is in pieces.
        on_epoch: called after every epoch.
        snapshot: a file to keep the training in, so that it can go on; see `fit`.

    Raises:
        UsageError: if the network does not fit the data.
        TrainingDiverged: if the loss is no longer a number.
        CheckpointError: if the snapshot is damaged or of another training.
        KeyboardInterrupt: if interrupted before the first epoch was over.
    """
    if config.vocabulary != len(data.vocabulary):
        raise UsageError(
            f"the network knows {config.vocabulary} words, the data has {len(data.vocabulary)}"
        )
    with reproducible(training.seed):
        network = LanguageNetwork(config)
    validation = chunks(data.validation, config.context)
    result = fit(
        network,
        shuffled_pieces(chunks(data.train, config.context), training),
        lambda trained: -mean_loss(trained, validation),
        training,
        on_epoch,
        snapshot,
    )
    return TrainedLanguage(network, config, training, result.history, result.interrupted)
