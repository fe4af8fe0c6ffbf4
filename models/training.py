"""One training loop for every network."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from pickle import UnpicklingError

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from entrain.deploy.errors import CheckpointError, TrainingDiverged, UsageError
from entrain.deploy.files import writing_whole


@dataclass(frozen=True)
class TrainingConfig:
    """How to train.

    Args:
        epochs: passes over the data.
        warmup_epochs: epochs in which the learning rate rises linearly; then it falls to zero
            along a half cosine.
        peak_rate: learning rate at the end of the warm-up.
        weight_decay: AdamW's, on matrices and kernels only.
        batch: largest number of examples a step.
        label_smoothing: of the cross entropy, in [0, 1).
        clip: largest norm of the gradient.
        seed: of everything random.

    Raises:
        UsageError: if a value is out of range.
    """

    epochs: int = 80
    warmup_epochs: int = 5
    peak_rate: float = 4e-3
    weight_decay: float = 0.05
    batch: int = 128
    label_smoothing: float = 0.1
    clip: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch) < 1 or min(self.warmup_epochs, self.seed) < 0:
            raise UsageError(f"epochs and batch must be positive, and no count negative: {self}")
        if not (self.peak_rate > 0 and self.clip > 0 and self.weight_decay >= 0):
            raise UsageError(f"the learning rate and the clip must be positive: {self}")
        if not 0 <= self.label_smoothing < 1:
            raise UsageError(f"label smoothing must be in [0, 1), not {self.label_smoothing}")

    def rate(self, epoch: float) -> float:
        """The learning rate after `epoch` epochs, which need not be whole."""
        if epoch < self.warmup_epochs:
            return self.peak_rate * epoch / self.warmup_epochs
        falling = max(self.epochs - self.warmup_epochs, 1)
        progress = min((epoch - self.warmup_epochs) / falling, 1.0)
        return self.peak_rate * 0.5 * (1 + math.cos(math.pi * progress))


@dataclass(frozen=True)
class EpochReport:
    """What one epoch did.

    Args:
        epoch: its number, from 1.
        epochs: how many there will be.
        loss: mean training loss over its steps.
        rate: learning rate of its last step.
        validation: what `validate` returned after it; higher is better.
    """

    epoch: int
    epochs: int
    loss: float
    rate: float
    validation: float


@dataclass(frozen=True, eq=False)
class FitResult:
    """A trained state.

    Args:
        state: the network's weights, which the network has too.
        history: one report an epoch.
        interrupted: whether Ctrl-C ended the training; then the state is the best by validation
            so far, otherwise that of the last epoch, which is the steadier choice.
    """

    state: dict[str, Tensor]
    history: tuple[EpochReport, ...]
    interrupted: bool

    @property
    def validation(self) -> float:
        """What `validate` returned for this state."""
        reported = [report.validation for report in self.history]
        return max(reported) if self.interrupted else reported[-1]


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Seed torch and use one thread, then put both back.

    Sums in one order give the same bits; and networks of this size are slower on two threads.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def fit(
    network: nn.Module,
    epoch_batches: Callable[[int], Iterable[tuple[Tensor, Tensor]]],
    validate: Callable[[nn.Module], float],
    config: TrainingConfig,
    on_epoch: Callable[[EpochReport], None],
    snapshot: Path | None = None,
) -> FitResult:
    """Train a classifier by AdamW on the smoothed cross entropy. The same seed, the same weights.

    Args:
        network: gives logits [..., classes]; it is trained in place and left in evaluation mode.
        epoch_batches: the inputs and int64 targets [...] of each epoch, from 0; they depend on the
            epoch's number only. Targets of -100 do not count.
        validate: judges the network, which is in evaluation mode; higher is better.
        config: the schedule.
        on_epoch: called after every epoch.
        snapshot: a file to keep the training in after every epoch; where it exists, the training
            goes on from it and ends in the same weights as if it had never stopped.

    Raises:
        TrainingDiverged: if the loss is no longer a number.
        CheckpointError: if the snapshot is damaged or of another training.
        KeyboardInterrupt: if interrupted before the first epoch was over.
    """
    history: list[EpochReport] = []
    best: dict[str, Tensor] = {}
    interrupted = False
    with reproducible(config.seed):
        optimiser = _adamw(network, config)
        if snapshot is not None and snapshot.is_file():
            history, best = _go_on(snapshot, network, optimiser, config)
        try:
            for epoch in range(len(history), config.epochs):
                loss, rate = _train_epoch(network, epoch, epoch_batches(epoch), optimiser, config)
                network.eval()
                report = EpochReport(epoch + 1, config.epochs, loss, rate, validate(network))
                if not history or report.validation > max(past.validation for past in history):
                    best = copy.deepcopy(network.state_dict())
                history.append(report)
                if snapshot is not None:
                    _keep(snapshot, network, optimiser, config, history, best)
                on_epoch(report)
        except KeyboardInterrupt:
            if not history:
                raise
            interrupted = True
            network.load_state_dict(best)
    network.eval()
    return FitResult(copy.deepcopy(network.state_dict()), tuple(history), interrupted)


def _train_epoch(
    network: nn.Module,
    epoch: int,
    batches: Iterable[tuple[Tensor, Tensor]],
    optimiser: torch.optim.Optimizer,
    config: TrainingConfig,
) -> tuple[float, float]:
    """The mean loss and the last learning rate of one epoch."""
    network.train()
    steps = list(batches)
    total = 0.0
    rate = 0.0
    for step, (inputs, targets) in enumerate(steps):
        rate = config.rate(epoch + (step + 1) / len(steps))
        for group in optimiser.param_groups:
            group["lr"] = rate
        logits = network(inputs)
        loss = F.cross_entropy(
            logits.flatten(0, -2), targets.flatten(), label_smoothing=config.label_smoothing
        )
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), config.clip)
        optimiser.step()
        total += loss.item()
    if not math.isfinite(total):
        raise TrainingDiverged(
            f"the training loss is no longer a number in epoch {epoch + 1}",
            remedy=f"Lower the peak learning rate (now {config.peak_rate:g}).",
        )
    return total / max(len(steps), 1), rate


def _adamw(network: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """AdamW that decays matrices and kernels, not biases, norms, positions or anchors."""
    decayed: list[Tensor] = []
    kept: list[Tensor] = []
    for name, parameter in network.named_parameters():
        is_map = name.rpartition(".")[2] == "weight" and parameter.ndim >= 2
        (decayed if is_map else kept).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": kept, "weight_decay": 0.0},
    ]
    # Fused: networks of this size spend much of a step on the many small updates otherwise.
    return torch.optim.AdamW(groups, lr=config.peak_rate, fused=True)


# What torch raises for a file that is not what it was.
_DAMAGE = (OSError, EOFError, RuntimeError, ValueError, LookupError, TypeError, UnpicklingError)


def _keep(
    snapshot: Path,
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    config: TrainingConfig,
    history: list[EpochReport],
    best: dict[str, Tensor],
) -> None:
    content = {
        "config": asdict(config),
        "network": network.state_dict(),
        "optimiser": optimiser.state_dict(),
        "random": torch.get_rng_state(),
        "history": [asdict(report) for report in history],
        "best": best,
    }
    with writing_whole(snapshot) as temporary:
        torch.save(content, temporary)


def _go_on(
    snapshot: Path, network: nn.Module, optimiser: torch.optim.Optimizer, config: TrainingConfig
) -> tuple[list[EpochReport], dict[str, Tensor]]:
    """Put everything back as it was after the last whole epoch: the history and the best."""
    remedy = f"remove {snapshot} to train from the start"
    try:
        content = torch.load(snapshot, map_location="cpu", weights_only=True)
        if content["config"] != asdict(config):
            raise CheckpointError(
                "the snapshot is of another training", where=str(snapshot), remedy=remedy
            )
        network.load_state_dict(content["network"])
        optimiser.load_state_dict(content["optimiser"])
        torch.set_rng_state(content["random"])
        return [EpochReport(**report) for report in content["history"]], content["best"]
    except _DAMAGE as error:
        raise CheckpointError(
            f"the snapshot cannot be read ({error})", where=str(snapshot), remedy=remedy
        ) from error
