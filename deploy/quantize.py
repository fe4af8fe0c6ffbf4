"""The stage ``quantize``: calibration, then a short quantization-aware fine-tuning."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn

from entrain.deploy.errors import CheckpointError
from entrain.deploy.files import write_whole
from entrain.deploy.tasks import TASKS
from entrain.deploy.tasks.contract import DataSet
from entrain.models.checkpoint import Checkpoint
from entrain.models.training import EpochReport, TrainingConfig, fit, reproducible

# what reading a file that is no state of this network raises
_DAMAGED = (OSError, EOFError, RuntimeError, TypeError, ValueError, KeyError, UnpicklingError)

CALIBRATION_INPUTS = 1024
CALIBRATION_BATCH = 128


@dataclass(frozen=True)
class QuantizationConfig:
    """How a trained network is quantized.

    Args:
        epochs: of quantization-aware fine-tuning after calibration; 0 for none.
        peak_rate: its largest learning rate.
        seed: of everything random.
    """

    epochs: int = 3
    peak_rate: float = 5e-5
    seed: int = 0

    def training(self, trained: TrainingConfig) -> TrainingConfig:
        """The fine-tuning's schedule; loss and batches are those of the training before it."""
        return replace(
            trained,
            epochs=self.epochs,
            warmup_epochs=1,
            peak_rate=self.peak_rate,
            weight_decay=0.0,
            seed=self.seed,
        )


@dataclass(frozen=True, eq=False)
class Quantized:
    """A quantized network, with the validation accuracy of the weights that were kept."""

    network: nn.Module
    validation_accuracy: float
    interrupted: bool


def quantize_network(
    checkpoint: Checkpoint,
    data: DataSet[Any],
    config: QuantizationConfig,
    on_epoch: Callable[[EpochReport], None],
) -> Quantized:
    """The quantized form of a trained network.

    Args:
        checkpoint: the trained network.
        data: its training part calibrates and fine-tunes, its validation part judges.
        config: how.
        on_epoch: called after every epoch of fine-tuning.

    Raises:
        CheckpointError: the network tells other classes apart than the data has.
        UsageError: the device cannot compute something in the network.
        TrainingDiverged: the loss is no longer a number.
    """
    check_labels(checkpoint, data)
    task = TASKS[checkpoint.task]
    known, validation = (task.inputs(part, checkpoint) for part in (data.train, data.validation))
    truth = task.truth(data.validation)

    def judge(network: nn.Module) -> float:
        return float((task.answers(network, validation) == truth).mean())

    with reproducible(config.seed):
        network = task.quantized(checkpoint)
        order = torch.randperm(len(known))[:CALIBRATION_INPUTS]
        calibrate(network, known[order])
    if config.epochs == 0:
        return Quantized(network, judge(network), interrupted=False)
    training = config.training(checkpoint.training)
    batches = task.batches(data, checkpoint, training)
    result = fit(network, batches, judge, training, on_epoch)
    return Quantized(network, result.validation, result.interrupted)


def check_labels(checkpoint: Checkpoint, data: DataSet[Any]) -> None:
    """Hold a network to the classes of the data.

    Raises:
        CheckpointError: it knows others.
    """
    if checkpoint.labels != data.labels:
        raise CheckpointError(
            f"the network knows {', '.join(checkpoint.labels)}; the data has "
            f"{', '.join(data.labels)}",
            remedy="use the data that the network was trained on (--data-dir), or train anew",
        )


def calibrate(network: nn.Module, inputs: Tensor) -> None:
    """Let every quantizer see inputs [N, ...] and set its step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of optional packages that are not there
        from brevitas.graph.calibrate import calibration_mode

    network.eval()
    with torch.no_grad(), calibration_mode(network):
        for batch in torch.split(inputs, CALIBRATION_BATCH):
            network(batch)
    network.eval()


def save_quantized(path: Path, network: nn.Module) -> None:
    """Write the quantized network's state, whole.

    Raises:
        UsageError: it cannot be written there.
    """
    # torch.save to a file turns a full disk into an error of its own making.
    archive = io.BytesIO()
    torch.save(network.state_dict(), archive)
    write_whole(path, archive.getvalue())


def load_quantized(path: Path, checkpoint: Checkpoint) -> nn.Module:
    """The quantized network of a trained one.

    Raises:
        CheckpointError: the file is missing, damaged, or of another network.
        UsageError: the device cannot compute something in the network.
    """
    network = TASKS[checkpoint.task].quantized(checkpoint)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            network.load_state_dict(state)
    except FileNotFoundError as error:
        raise CheckpointError(
            "the network has not been quantized yet",
            where=str(path),
            remedy="run 'entrain quantize' first",
        ) from error
    except _DAMAGED as error:
        raise CheckpointError(
            "damaged, or the quantized form of another network",
            where=str(path),
            remedy="run 'entrain quantize' again",
        ) from error
    return network.eval()
