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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from entrain.deploy.errors import CheckpointError
from entrain.models.networks import TASKS, NetworkConfig
from entrain.models.preparations import PREPARATIONS
from entrain.models.preparations.contract import RETRAIN, tensors, typed
from entrain.models.training import EpochReport, TrainingConfig

FORMAT = "entrain checkpoint"
VERSION = 2
# Tables that a network computes and no checkpoint holds, such as sinusoidal positions: elements.
LARGEST_TABLES = 2**24

Settings = TypeVar("Settings")


class Trained(Protocol):
    """What every task's training makes."""

    @property
    def network(self) -> nn.Module:
        """The trained network."""

    @property
    def config(self) -> NetworkConfig:
        """Its sizes and attention."""

    @property
    def training(self) -> TrainingConfig:
        """How it was trained."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes."""

    @property
    def source(self) -> str:
        """Where the data came from."""

    @property
    def history(self) -> Sequence[EpochReport]:
        """One report an epoch."""

    @property
    def validation_accuracy(self) -> float:
        """Of the weights that were kept, in [0, 1]."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained network with what it needs to be used and judged.

    Args:
        task: a name of `networks.TASKS`.
        config: the network's sizes and attention.
        training: how it was trained.
        labels: the classes, in the order of the logits.
        preparation: makes inputs ready, as `preparations.PREPARATIONS` has it for the task.
        state: the network's weights and norms.
        source: where the training data came from.
        validation_accuracy: in [0, 1].
        epochs: how many were trained; fewer than planned if interrupted.
    """

    task: str
    config: NetworkConfig
    training: TrainingConfig
    labels: tuple[str, ...]
    preparation: Any
    state: dict[str, Tensor]
    source: str
    validation_accuracy: float
    epochs: int

    @classmethod
    def of(cls, task: str, trained: Trained, preparation: Any) -> Checkpoint:
        """What training made, as a checkpoint."""
        return cls(
            task=task,
            config=trained.config,
            training=trained.training,
            labels=trained.labels,
            preparation=preparation,
            state=trained.network.state_dict(),
            source=trained.source,
            validation_accuracy=trained.validation_accuracy,
            epochs=len(trained.history),
        )

    def build_network(self) -> nn.Module:
        """The network with its weights, in evaluation mode.

        Raises:
            CheckpointError: if the weights are not those of the configured network.
        """
        # Built without memory first, so that no checkpoint asks for a size that it does not hold.
        with torch.device("meta"):
            outline = self.config.build()
        expected = outline.state_dict()
        _check_tables(outline, expected)
        _check_state(expected, self.state, self.config)
        with torch.random.fork_rng(devices=[]):  # whose random weights are replaced at once
            network = self.config.build()
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
        "preparation": PREPARATIONS[checkpoint.task].write(checkpoint.preparation),
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
            "this is not a checkpoint of Entrain", where=str(path), remedy=RETRAIN
        )
    if content.get("version") != VERSION:
        raise CheckpointError(
            f"the checkpoint has version {content.get('version')!r}, expected {VERSION}",
            where=str(path),
            remedy="It was written by another version of Entrain: remove it, and train again.",
        )
    try:
        checkpoint = _parse(content)
        _check_labels(checkpoint.labels, checkpoint.build_network())
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
        raise CheckpointError("there is no such checkpoint", where=str(path), remedy=RETRAIN)
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
        "the checkpoint is damaged, or is a file of another kind", where=str(path), remedy=RETRAIN
    )


def _parse(content: Mapping[str, Any]) -> Checkpoint:
    task = content.get("task")
    if task not in TASKS:
        raise CheckpointError(
            f"the checkpoint is of the task {task!r}, expected one of: {', '.join(TASKS)}",
            remedy=RETRAIN,
        )
    config = _settings(TASKS[task], content.get("config"), "config")
    return Checkpoint(
        task=task,
        config=config,
        training=_settings(TrainingConfig, content.get("training"), "training"),
        labels=typed(tuple[str, ...], content.get("labels"), "labels"),
        preparation=PREPARATIONS[task].read(content.get("preparation"), config),
        state=tensors(content.get("state"), "state"),
        source=typed(str, content.get("source"), "source"),
        validation_accuracy=typed(float, content.get("validation_accuracy"), "accuracy"),
        epochs=typed(int, content.get("epochs"), "epochs"),
    )


def _settings(kind: type[Settings], value: Any, name: str) -> Settings:
    """The value as a configuration of this kind, and nothing else in it."""
    settings = typed(kind, value, name)
    known = asdict(settings)  # type: ignore[call-overload]
    if known != value:
        raise CheckpointError(
            f"the checkpoint's {name} is {value}, of which only {known} is known", remedy=RETRAIN
        )
    return settings


def _check_labels(labels: tuple[str, ...], network: nn.Module) -> None:
    classifier = network.get_submodule("classifier")
    if isinstance(classifier, nn.Linear) and len(labels) != classifier.out_features:
        raise CheckpointError(
            f"the checkpoint has {len(labels)} labels, expected {classifier.out_features}",
            remedy=RETRAIN,
        )


def _check_tables(outline: nn.Module, expected: Mapping[str, Tensor]) -> None:
    """What the network computes for itself must stay within reason."""
    tables = {name: table for name, table in outline.named_buffers() if name not in expected}
    size = sum(table.numel() for table in tables.values())
    if size > LARGEST_TABLES:
        raise CheckpointError(
            f"the configured network would compute tables of {size:,} numbers "
            f"({', '.join(tables)}), more than the {LARGEST_TABLES:,} that are allowed",
            remedy=RETRAIN,
        )


def _check_state(
    expected: Mapping[str, Tensor], found: Mapping[str, Tensor], config: NetworkConfig
) -> None:
    """Compare names, shapes and types before anything is built."""
    network = f"the configured network ({config.attention.title})"
    for name, tensor in expected.items():
        if name not in found:
            raise CheckpointError(f"the checkpoint lacks {name} of {network}", remedy=RETRAIN)
        wanted = f"{list(tensor.shape)} {tensor.dtype}"
        given = f"{list(found[name].shape)} {found[name].dtype}"
        if wanted != given:
            raise CheckpointError(
                f"{name} is {given} in the checkpoint, expected {wanted} of {network}",
                remedy=RETRAIN,
            )
        if not torch.isfinite(found[name]).all():
            raise CheckpointError(f"{name} holds values that are not numbers", remedy=RETRAIN)
    extra = sorted(set(found) - set(expected))
    if extra:
        raise CheckpointError(
            f"the checkpoint holds {', '.join(extra[:3])}, which {network} has not", remedy=RETRAIN
        )
