"""Character models: from a text to a trained network, its bits per character and its norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from entrain.deploy.errors import DataError
from entrain.models.data.characters import CharacterData
from entrain.models.networks.increments import CharacterNetwork
from entrain.models.order import norms_by_depth
from entrain.models.training import EpochReport, TrainingConfig, fit, reproducible

_EVALUATION_BATCH = 64
# Windows of the validation part on which norms are taken after every epoch.
_PROBES = 8

Network = TypeVar("Network", bound=CharacterNetwork)
Network_co = TypeVar("Network_co", bound=CharacterNetwork, covariant=True)


class NetworkConfig(Protocol[Network_co]):
    """What `train_characters` takes: sizes of a network that scores symbols."""

    def build(self) -> Network_co:
        """The network, with random weights."""


@dataclass(frozen=True)
class Windows:
    """What of a text is seen, and when.

    Args:
        context: characters of a window; each is followed by a target.
        steps: batches an epoch, each of windows drawn at random. An epoch is so many steps and not
            a pass over the text, so that snapshots come often whatever the text's length.
        validation: characters of the validation part, from its start, that are scored after every
            epoch.
    """

    context: int = 128
    steps: int = 200
    validation: int = 32_768


@dataclass(frozen=True)
class EpochNorms:
    """How large a network's values are after an epoch, on the same few windows each time.

    Args:
        attention: the largest increment by attention over layers and tokens, a root mean square.
        feed: the largest increment by a feed-forward layer.
        state: the largest state that leaves a layer.
        gradient: length of the gradient of the mean cross entropy in nats, all parameters.
    """

    attention: float
    feed: float
    state: float
    gradient: float


@dataclass(frozen=True, eq=False)
class TrainedCharacters(Generic[Network]):
    """A trained character network.

    Args:
        network: in evaluation mode.
        training: how it was trained.
        history: one report an epoch; `validation` is bits per character, negated.
        norms: one an epoch.
        interrupted: whether Ctrl-C ended the training.
    """

    network: Network
    training: TrainingConfig
    history: tuple[EpochReport, ...]
    norms: tuple[EpochNorms, ...]
    interrupted: bool


class RecordedNetwork(nn.Module, Generic[Network]):
    """A network and what was measured of it after every epoch.

    The record is a buffer: the snapshot of a training carries it along, and a training that goes on
    has the epochs before.
    """

    record: Tensor
    epochs_done: Tensor

    def __init__(self, network: Network, epochs: int) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("record", torch.zeros(epochs, 4, dtype=torch.float64))
        self.register_buffer("epochs_done", torch.zeros((), dtype=torch.int64))

    def forward(self, tokens: Tensor) -> Tensor:
        """The network's scores."""
        scores: Tensor = self.network(tokens)
        return scores

    def note(self, norms: EpochNorms) -> None:
        """Add the norms of one more epoch."""
        row = [norms.attention, norms.feed, norms.state, norms.gradient]
        self.record[self.epochs_done] = torch.tensor(row, dtype=torch.float64)
        self.epochs_done += 1

    def norms(self) -> tuple[EpochNorms, ...]:
        """The norms of all epochs so far."""
        return tuple(EpochNorms(*row) for row in self.record[: int(self.epochs_done)].tolist())


def random_windows(
    characters: NDArray[np.uint8], windows: Windows, config: TrainingConfig
) -> Callable[[int], Iterator[tuple[Tensor, Tensor]]]:
    """Windows of a text for each epoch, for `fit`; they depend on the seed and the epoch only.

    Args:
        characters: the text, uint8 [N].
        windows: how long a window is, and how many batches an epoch has.
        config: its batch and seed.

    Returns:
        From the epoch's number to batches of inputs and targets, each int64 [batch, context].

    Raises:
        DataError: if the text is shorter than a window and its last target.
    """
    _check_length(characters, windows.context)
    places = np.arange(windows.context + 1)

    def epoch_batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        random = np.random.default_rng((config.seed, epoch))
        for _ in range(windows.steps):
            starts = random.integers(0, len(characters) - windows.context, config.batch)
            drawn = torch.from_numpy(characters[starts[:, None] + places].astype(np.int64))
            yield drawn[:, :-1], drawn[:, 1:]

    return epoch_batches


@torch.no_grad()
def bits_per_character(network: nn.Module, characters: NDArray[np.uint8], context: int) -> float:
    """Mean of -log2 of the probability of each character but the first.

    The windows overlap by half, and a character counts in the first window that has it as a
    target: all but the first `context` are so predicted from at least half a context.

    Args:
        network: from symbols int64 [B, T] to scores [B, T, symbols].
        characters: the text, uint8 [N].
        context: characters of a window.

    Raises:
        DataError: if the text is shorter than a window and its last target.
    """
    _check_length(characters, context)
    network.eval()
    last = len(characters) - 1 - context
    starts = np.append(np.arange(0, last, max(context // 2, 1)), last)
    counted_before = np.append(0, starts[:-1] + context - starts[1:])
    places = np.arange(context)
    counts = torch.from_numpy(places >= counted_before[:, None])
    total = 0.0
    for chosen in np.array_split(
        np.arange(len(starts)), math.ceil(len(starts) / _EVALUATION_BATCH)
    ):
        seen = starts[chosen, None] + places
        inputs, targets = (
            torch.from_numpy(characters[part].astype(np.int64)) for part in (seen, seen + 1)
        )
        losses = F.cross_entropy(network(inputs).transpose(1, 2), targets, reduction="none")
        total += losses[counts[chosen]].double().sum().item()
    return total / math.log(2) / (len(characters) - 1)


def epoch_norms(network: CharacterNetwork, inputs: Tensor, targets: Tensor) -> EpochNorms:
    """The norms on windows; `inputs` and `targets` are int64 [B, T]."""
    with torch.enable_grad():
        loss = F.cross_entropy(network(inputs).flatten(0, 1), targets.flatten())
        gradients = torch.autograd.grad(loss, list(network.parameters()), allow_unused=True)
    lengths = [gradient.norm() for gradient in gradients if gradient is not None]
    norms = norms_by_depth(network, inputs)
    return EpochNorms(
        attention=max(norms.attention),
        feed=max(norms.feed),
        state=max(norms.state),
        gradient=torch.stack(lengths).norm().item(),
    )


def probe(characters: NDArray[np.uint8], context: int) -> tuple[Tensor, Tensor]:
    """The first few windows of a text, one after the other: inputs and targets int64 [B, context].

    Raises:
        DataError: if the text is shorter than a window and its last target.
    """
    _check_length(characters, context)
    count = min(_PROBES, (len(characters) - 1) // context)
    text = torch.from_numpy(characters[: count * context + 1].astype(np.int64))
    return text[:-1].view(count, context), text[1:].view(count, context)


def train_characters(
    data: CharacterData,
    config: NetworkConfig[Network],
    windows: Windows,
    training: TrainingConfig,
    on_epoch: Callable[[EpochReport], None],
    snapshot: Path | None = None,
) -> TrainedCharacters[Network]:
    """Train a character network. The same data, settings and seed give the same weights.

    Args:
        data: train and validation parts are used.
        config: builds the network.
        windows: context, and steps an epoch.
        training: schedule, batch (in windows) and seed.
        on_epoch: called after every epoch.
        snapshot: see `fit`.

    Raises:
        DataError: if a part is shorter than a window.
        CheckpointError: if the snapshot is damaged or of another training.
        TrainingDiverged: if the loss is no longer a number.
        KeyboardInterrupt: if interrupted before the first epoch was over.
    """
    with reproducible(training.seed):
        network = config.build()
    recorded = RecordedNetwork(network, training.epochs)
    probed = probe(data.validation, windows.context)
    validated = data.validation[: max(windows.validation, windows.context + 1)]

    def validate(_: nn.Module) -> float:
        recorded.note(epoch_norms(network, *probed))
        return -bits_per_character(network, validated, windows.context)

    result = fit(
        recorded,
        random_windows(data.train, windows, training),
        validate,
        training,
        on_epoch,
        snapshot,
    )
    return TrainedCharacters(
        network, training, result.history, recorded.norms(), result.interrupted
    )


def _check_length(characters: NDArray[np.uint8], context: int) -> None:
    if len(characters) <= context:
        raise DataError(
            f"a part of the text has {len(characters)} characters, "
            f"a window and its last target need {context + 1}",
            remedy="Take a longer text, or a shorter context.",
        )
