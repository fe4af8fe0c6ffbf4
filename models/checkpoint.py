"""Trained networks on disk.

A checkpoint holds plain values and tensors only, so that reading one runs no code of its author.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from entrain.deploy.errors import CheckpointError, UsageError
from entrain.models.keyword_task import FeatureStatistics, TrainedKeyword
from entrain.models.networks import TASKS
from entrain.models.networks.keyword import KeywordConfig, KeywordNetwork
from entrain.models.training import TrainingConfig

FORMAT = "entrain checkpoint"
VERSION = 1
_RETRAIN = "Give a checkpoint written by `entrain train`, or train again."

Part = TypeVar("Part")
Settings = TypeVar("Settings", KeywordConfig, TrainingConfig)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained network with what it needs to be used and judged.

    Args:
        task: a name of `networks.TASKS`.
        config: the network's sizes and attention.
        training: how it was trained.
        labels: the words, in the order of the logits.
        statistics: normalise the features.
        state: the network's weights and norms.
        source: where the training clips came from.
        validation_accuracy: in [0, 1].
        epochs: how many were trained; fewer than planned if interrupted.
    """

    task: str
    config: KeywordConfig
    training: TrainingConfig
    labels: tuple[str, ...]
    statistics: FeatureStatistics
    state: dict[str, Tensor]
    source: str
    validation_accuracy: float
    epochs: int

    @classmethod
    def of(cls, trained: TrainedKeyword) -> Checkpoint:
        """What training made, as a checkpoint."""
        return cls(
            task="keyword",
            config=trained.config,
            training=trained.training,
            labels=trained.labels,
            statistics=trained.statistics,
            state=trained.network.state_dict(),
            source=trained.source,
            validation_accuracy=trained.validation_accuracy,
            epochs=len(trained.history),
        )

    def build_network(self) -> KeywordNetwork:
        """The network with its weights, in evaluation mode.

        Raises:
            CheckpointError: if the weights are not those of the configured network.
        """
        _, network_type = TASKS[self.task]
        # Built without memory, so that no checkpoint can ask for a size that it does not hold.
        with torch.device("meta"):
            network = network_type(self.config)
        _check_state(network.state_dict(), self.state, self.config)
        copies = {name: tensor.clone() for name, tensor in self.state.items()}
        network.load_state_dict(copies, assign=True)
        return network.eval()


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint whole: under a temporary name, then renamed over what was there.

    Raises:
        OSError: it cannot be written there.
    """
    content = {
        "format": FORMAT,
        "version": VERSION,
        "task": checkpoint.task,
        "config": asdict(checkpoint.config),
        "training": asdict(checkpoint.training),
        "labels": list(checkpoint.labels),
        "statistics": {
            "mean": torch.from_numpy(checkpoint.statistics.mean),
            "deviation": torch.from_numpy(checkpoint.statistics.deviation),
        },
        "state": checkpoint.state,
        "source": checkpoint.source,
        "validation_accuracy": checkpoint.validation_accuracy,
        "epochs": checkpoint.epochs,
    }
    # torch.save to a file turns a full disk into an error of its own making.
    archive = io.BytesIO()
    torch.save(content, archive)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(archive.getvalue())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint and check that its weights fit its network.

    Raises:
        CheckpointError: if the file is missing, damaged, not a checkpoint, or of another network.
    """
    content = _read(path)
    if content.get("format") != FORMAT:
        raise CheckpointError(
            "this is not a checkpoint of Entrain", where=str(path), remedy=_RETRAIN
        )
    if content.get("version") != VERSION:
        raise CheckpointError(
            f"the checkpoint has version {content.get('version')!r}, expected {VERSION}",
            where=str(path),
            remedy=_RETRAIN,
        )
    try:
        checkpoint = _parse(content)
        checkpoint.build_network()
    except CheckpointError as error:
        raise CheckpointError(error.what, where=str(path), remedy=error.remedy) from error
    return checkpoint


# What zipfile and torch raise for bytes that are not what they were.
_DAMAGE = (
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    LookupError,
    AttributeError,
    NotImplementedError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
    pickle.UnpicklingError,
)


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise CheckpointError("there is no such checkpoint", where=str(path), remedy=_RETRAIN)
    try:
        with zipfile.ZipFile(path) as archive:
            # torch does not look at the checksums that it writes.
            damaged = archive.testzip()
        content = None if damaged else torch.load(path, map_location="cpu", weights_only=True)
    except _DAMAGE as error:
        raise _unreadable(path) from error
    if damaged:
        raise _unreadable(path)
    return content if isinstance(content, Mapping) else {}


def _unreadable(path: Path) -> CheckpointError:
    return CheckpointError(
        "the checkpoint is damaged, or is a file of another kind", where=str(path), remedy=_RETRAIN
    )


def _parse(content: Mapping[str, Any]) -> Checkpoint:
    task = content.get("task")
    if task not in TASKS:
        raise CheckpointError(
            f"the checkpoint is of the task {task!r}, expected one of: {', '.join(TASKS)}",
            remedy=_RETRAIN,
        )
    config_type, _ = TASKS[task]
    config = _settings(config_type, content.get("config"), "config")
    labels = _typed(tuple[str, ...], content.get("labels"), "labels")
    if len(labels) != config.classes:
        raise CheckpointError(
            f"the checkpoint has {len(labels)} labels, expected {config.classes}", remedy=_RETRAIN
        )
    return Checkpoint(
        task=task,
        config=config,
        training=_settings(TrainingConfig, content.get("training"), "training"),
        labels=labels,
        statistics=_statistics(content.get("statistics"), config.bands),
        state=_tensors(content.get("state"), "state"),
        source=_typed(str, content.get("source"), "source"),
        validation_accuracy=_typed(float, content.get("validation_accuracy"), "accuracy"),
        epochs=_typed(int, content.get("epochs"), "epochs"),
    )


def _settings(kind: type[Settings], value: Any, name: str) -> Settings:
    """The value as a configuration of this kind, and nothing else in it."""
    settings = _typed(kind, value, name)
    if asdict(settings) != value:
        raise CheckpointError(
            f"the checkpoint's {name} is {value}, of which only {asdict(settings)} is known",
            remedy=_RETRAIN,
        )
    return settings


def _typed(kind: type[Part], value: Any, name: str) -> Part:
    """The value as a `kind`."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except (ValidationError, UsageError) as error:
        raise CheckpointError(
            f"the checkpoint's {name} cannot be used: {error}", remedy=_RETRAIN
        ) from error


def _tensors(value: Any, name: str) -> dict[str, Tensor]:
    if not isinstance(value, Mapping) or not all(isinstance(v, Tensor) for v in value.values()):
        raise CheckpointError(f"the checkpoint's {name} are not tensors", remedy=_RETRAIN)
    return {str(key): tensor for key, tensor in value.items()}


def _statistics(value: Any, bands: int) -> FeatureStatistics:
    tensors = _tensors(value, "statistics")
    shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}
    if shapes != {"mean": [bands], "deviation": [bands]}:
        raise CheckpointError(
            f"the checkpoint's statistics are {shapes}, expected mean and deviation of {bands}",
            remedy=_RETRAIN,
        )
    mean, deviation = (tensors[name].numpy().astype(np.float32) for name in ("mean", "deviation"))
    if not (np.isfinite(mean).all() and np.isfinite(deviation).all() and (deviation > 0).all()):
        raise CheckpointError(
            "the checkpoint's statistics must be finite, its deviations positive", remedy=_RETRAIN
        )
    return FeatureStatistics(mean, deviation)


def _check_state(
    expected: Mapping[str, Tensor], found: Mapping[str, Tensor], config: KeywordConfig
) -> None:
    """Compare names, shapes and types before anything is built."""
    network = f"the configured network ({config.attention.title})"
    for name, tensor in expected.items():
        if name not in found:
            raise CheckpointError(f"the checkpoint lacks {name} of {network}", remedy=_RETRAIN)
        wanted = f"{list(tensor.shape)} {tensor.dtype}"
        given = f"{list(found[name].shape)} {found[name].dtype}"
        if wanted != given:
            raise CheckpointError(
                f"{name} is {given} in the checkpoint, expected {wanted} of {network}",
                remedy=_RETRAIN,
            )
        if not torch.isfinite(found[name]).all():
            raise CheckpointError(f"{name} holds values that are not numbers", remedy=_RETRAIN)
    extra = sorted(set(found) - set(expected))
    if extra:
        raise CheckpointError(
            f"the checkpoint holds {', '.join(extra[:3])}, which {network} has not", remedy=_RETRAIN
        )
