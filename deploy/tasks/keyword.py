"""Keyword spotting behind a convolutional front: clips of one second, and the word in each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from entrain.deploy.errors import CheckpointError, UsageError
from entrain.deploy.tasks.contract import Recipe, Task, Training

if TYPE_CHECKING:
    from torch import Tensor, nn

    from entrain.deploy.tasks.contract import Classes, EpochBatches, OnEpoch
    from entrain.models.augmentation import Augmentation
    from entrain.models.checkpoint import Checkpoint
    from entrain.models.data import Clips, KeywordData
    from entrain.models.keyword_task import FeatureStatistics, KeywordSettings
    from entrain.models.training import TrainingConfig

EPOCHS = 80
SYNTHETIC_EPOCHS = 20  # synthetic speech is learned sooner, and nobody relies on it


@dataclass(frozen=True)
class KeywordRecipe(Recipe):
    """How a keyword network is trained and quantized.

    Args:
        standard_12: the standard set of ten words, unknown and silence.
    """

    task: ClassVar[str] = "keyword"
    built_in: ClassVar[str] = "synthetic"

    standard_12: bool = False

    @property
    def usual_epochs(self) -> int:
        """See `Recipe`."""
        return SYNTHETIC_EPOCHS if self.data == self.built_in else EPOCHS

    @property
    def data_name(self) -> str:
        """See `Recipe`."""
        return f"{super().data_name}-12" if self.standard_12 else super().data_name


class KeywordTask(Task[KeywordRecipe, "KeywordData", "Clips"]):
    """See `Task`; what is read are normalised features [N, 1, 49, 40]."""

    recipe_type: ClassVar[type[Recipe]] = KeywordRecipe
    profile: ClassVar[str] = "kws01"
    sample: ClassVar[str] = "clip"
    group: ClassVar[str | None] = "speaker"
    takes: ClassVar[frozenset[str]] = frozenset({"download", "standard_12"})
    built_in_note: ClassVar[str] = (
        "No --data-dir: using synthetic speech. What is learned from it does not carry over to "
        "people's voices; accuracy on it says nothing about real speech."
    )

    def download(self, folder: Path, on_progress: Callable[[int, int | None], None]) -> None:
        """The official archive of Speech Commands."""
        from entrain.models.data.download import download_speech_commands

        download_speech_commands(folder, on_progress=on_progress)

    def load(self, recipe: KeywordRecipe) -> KeywordData:
        """The clips."""
        from entrain.models.data.speech import load_speech_commands, load_standard_12
        from entrain.models.data.synthetic_speech import synthetic_speech

        if recipe.data == recipe.built_in and recipe.standard_12:
            raise UsageError(
                "synthetic speech has not the standard twelve classes",
                where="--standard-12",
                remedy="name the folder of the official archive with --data-dir",
            )
        if recipe.data == recipe.built_in:
            return synthetic_speech()
        load = load_standard_12 if recipe.standard_12 else load_speech_commands
        return load(Path(recipe.data))

    def train(self, recipe: KeywordRecipe, data: KeywordData, on_epoch: OnEpoch) -> Training:
        """See `Task`."""
        from entrain.models.checkpoint import Checkpoint
        from entrain.models.keyword_task import train_keyword

        network = self.network(recipe.attention, len(data.labels))
        training = self.training(recipe)
        trained = train_keyword(data, network, training, on_epoch, augmentation=self.augmentation())
        checkpoint = Checkpoint.of(self.name, trained, trained.statistics)
        return Training(checkpoint, trained.interrupted)

    def network(self, attention: str, classes: int) -> KeywordSettings:
        """What is trained, for a mechanism and a number of words."""
        from entrain.models.attention import AttentionConfig
        from entrain.models.networks.keyword import KeywordConfig

        return KeywordConfig(AttentionConfig.parse(attention), classes=classes)

    def training(self, recipe: KeywordRecipe) -> TrainingConfig:
        """How it is trained."""
        from entrain.models.training import TrainingConfig

        return TrainingConfig(epochs=recipe.epochs, seed=recipe.seed)

    def augmentation(self) -> Augmentation:
        """How the training clips are varied."""
        from entrain.models.augmentation import Augmentation

        return Augmentation()

    def inputs(self, part: Clips, checkpoint: Checkpoint) -> Tensor:
        """See `Task`."""
        from entrain.models.keyword_task import prepare

        return prepare(part, statistics_of(checkpoint))

    def truth(self, part: Clips) -> Classes:
        """See `Task`."""
        return part.targets

    def answers(self, network: nn.Module, inputs: Tensor) -> Classes:
        """See `Task`."""
        from entrain.models.keyword_task import evaluate

        return evaluate(network, inputs)

    def quantized(self, checkpoint: Checkpoint) -> nn.Module:
        """See `Task`."""
        from entrain.deploy.quantization.keyword import new_quantized_keyword
        from entrain.models.networks.keyword import KeywordNetwork

        network = checkpoint.build_network()
        assert isinstance(network, KeywordNetwork)  # by networks.TASKS
        return new_quantized_keyword(network)

    def batches(
        self, data: KeywordData, checkpoint: Checkpoint, training: TrainingConfig
    ) -> EpochBatches:
        """Fresh variations of the training clips."""
        from entrain.models.keyword_task import augmented_batches

        statistics = statistics_of(checkpoint)
        return augmented_batches(data, statistics, training, self.augmentation())

    def groups(self, part: Clips) -> tuple[str, ...]:
        """Who speaks."""
        return part.speakers


def statistics_of(checkpoint: Checkpoint) -> FeatureStatistics:
    """What normalises a keyword network's features.

    Raises:
        CheckpointError: the checkpoint is of another kind of network.
    """
    from entrain.models.keyword_task import FeatureStatistics

    found = checkpoint.preparation
    if not isinstance(found, FeatureStatistics):
        raise CheckpointError(f"a checkpoint of the task {checkpoint.task} has no features")
    return found
