"""What a task is to the stages, the comparison and the command line.

A task is an object of a class of its own, in a file of its own, and a line in ``TASKS``. Nothing
here imports torch: the command line reads it to answer at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from entrain.deploy.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from entrain.models.checkpoint import Checkpoint
    from entrain.models.training import EpochReport, TrainingConfig

    Classes = NDArray[np.int64]
    OnEpoch = Callable[[EpochReport], None]
    EpochBatches = Callable[[int], Iterator[tuple[Tensor, Tensor]]]

QUANTIZATION_EPOCHS = 3


@dataclass(frozen=True)
class Recipe(ABC):
    """How a network is trained and quantized: the contents of a run's config.toml.

    Args:
        attention: the mechanism, as :meth:`AttentionConfig.parse` reads it.
        seed: of everything random.
        data: a folder, or the name of what is built in.
        epochs: of training.
        quantization_epochs: of quantization-aware fine-tuning; 0 for calibration alone.
    """

    task: ClassVar[str]
    built_in: ClassVar[str]  # data that needs no folder

    attention: str
    seed: int = 0
    data: str = ""
    epochs: int = 0
    quantization_epochs: int = QUANTIZATION_EPOCHS

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", self.data or self.built_in)
        object.__setattr__(self, "epochs", self.epochs or self.usual_epochs)

    @property
    @abstractmethod
    def usual_epochs(self) -> int:
        """How long to train on this data when nothing is said."""

    @property
    def data_name(self) -> str:
        """The data's short name: the folder's, or that of what is built in."""
        return self.data if self.data == self.built_in else Path(self.data).resolve().name

    @property
    def run_name(self) -> str:
        """The run's name when the user gives none: recipes that differ get names that differ.

        The numbers of epochs are part of it where they are not the usual ones.
        """
        parts = [self.task, self.attention, self.data_name, f"seed{self.seed}"]
        if self.epochs != self.usual_epochs:
            parts.append(f"e{self.epochs}")
        if self.quantization_epochs != QUANTIZATION_EPOCHS:
            parts.append(f"q{self.quantization_epochs}")
        return "-".join(parts)

    @classmethod
    def place(cls, data: str | Path) -> str:
        """A source of data as recipes name it, the same from every working directory."""
        return cls.built_in if data == cls.built_in else str(Path(data).resolve())


@dataclass(frozen=True)
class Choices:
    """What the command line says of a recipe beside mechanism and seed.

    Args:
        data_dir: the data's folder.
        epochs: of training.
        download: fetch the official data into that folder first.
        standard_12: the standard set of ten words, unknown and silence.
    """

    data_dir: Path | None = None
    epochs: int | None = None
    download: bool = False
    standard_12: bool = False


class Part(Protocol):
    """A part of a data set: to learn from, to watch the training with, or to report on."""

    def __len__(self) -> int:
        """How many samples."""

    def select(self, indices: Sequence[int]) -> Self:
        """The samples at these indices, in their order."""


PartT = TypeVar("PartT", bound=Part)
PartT_co = TypeVar("PartT_co", bound=Part, covariant=True)
RecipeT = TypeVar("RecipeT", bound=Recipe)


class DataSet(Protocol[PartT_co]):
    """A task's data."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of the logits."""

    @property
    def source(self) -> str:
        """Where it comes from."""

    @property
    def train(self) -> PartT_co:
        """To learn from."""

    @property
    def validation(self) -> PartT_co:
        """To watch the training with."""

    @property
    def test(self) -> PartT_co:
        """To report on."""


DataT = TypeVar("DataT", bound=DataSet[Any])


@dataclass(frozen=True, eq=False)
class Training:
    """What training made.

    Args:
        checkpoint: the trained network.
        interrupted: whether Ctrl-C ended it.
    """

    checkpoint: Checkpoint
    interrupted: bool


class Task(ABC, Generic[RecipeT, DataT, PartT]):
    """What the stages ask of a task.

    Attributes:
        recipe_type: what stands in its runs' config.toml.
        profile: what the firmware announces: as MLPerf Tiny's runner calls it, where that knows it.
        sample: what one of its inputs is called, in the singular.
        group: what several inputs may share that makes them alike, such as a speaker; intervals
            then resample those. None where every input stands for itself.
        takes: those of `Choices` that it takes beside a folder and a number of epochs.
        built_in_note: what is said when nothing but the built-in data is at hand.
    """

    recipe_type: ClassVar[type[Recipe]]
    profile: ClassVar[str]
    sample: ClassVar[str]
    group: ClassVar[str | None]
    takes: ClassVar[frozenset[str]] = frozenset()
    built_in_note: ClassVar[str]

    @property
    def name(self) -> str:
        """What it is called on the command line, in config.toml and in results.json."""
        return self.recipe_type.task

    def recipe(self, attention: str, seed: int, choices: Choices) -> Recipe:
        """The recipe of a mechanism, spelt as everywhere, on the chosen data.

        Raises:
            UsageError: an option is not one of this task's.
        """
        self._check_taken(choices)
        data = "" if choices.data_dir is None else self.recipe_type.place(choices.data_dir)
        own = {field.name for field in fields(self.recipe_type)} & self.takes
        settings = {name: getattr(choices, name) for name in own}
        return self.recipe_type(
            attention=attention, seed=seed, data=data, epochs=choices.epochs or 0, **settings
        )

    def _check_taken(self, choices: Choices) -> None:
        always = {"data_dir", "epochs"}
        for field in fields(choices):
            given = getattr(choices, field.name) != field.default
            if given and field.name not in always | self.takes:
                raise UsageError(
                    f"the task {self.name} does not take it",
                    where=f"--{field.name.replace('_', '-')}",
                    remedy="leave it out",
                )

    def download(self, _folder: Path, _on_progress: Callable[[int, int | None], None]) -> None:
        """Fetch the official data into a folder; only for tasks that take ``download``."""
        raise UsageError(f"there is nothing to download for {self.name}", where="--download")

    @abstractmethod
    def load(self, recipe: RecipeT) -> DataT:
        """The data of a recipe.

        Raises:
            UsageError: the recipe asks for what its data has not.
            DataError: the folder is missing, empty or damaged.
            ToolError: a program that makes the data is not installed.
        """

    @abstractmethod
    def train(self, recipe: RecipeT, data: DataT, on_epoch: OnEpoch) -> Training:
        """Train a network by a recipe.

        Raises:
            UsageError: the recipe makes no sense.
            TrainingDiverged: the loss is no longer a number.
            KeyboardInterrupt: interrupted before the first epoch was over.
        """

    @abstractmethod
    def inputs(self, part: PartT, checkpoint: Checkpoint) -> Tensor:
        """What the network reads for each sample, [N, ...].

        Raises:
            CheckpointError: the checkpoint does not know these samples.
        """

    @abstractmethod
    def truth(self, part: PartT) -> Classes:
        """The true classes [N]."""

    @abstractmethod
    def answers(self, network: nn.Module, inputs: Tensor) -> Classes:
        """The class that the network scores highest for each input [N]."""

    @abstractmethod
    def quantized(self, checkpoint: Checkpoint) -> nn.Module:
        """The quantized form of the trained network, not calibrated yet.

        Raises:
            UsageError: the device cannot compute something in it.
        """

    @abstractmethod
    def batches(
        self, data: DataT, checkpoint: Checkpoint, training: TrainingConfig
    ) -> EpochBatches:
        """The training data anew for each epoch of fine-tuning: inputs and targets."""

    @abstractmethod
    def groups(self, part: PartT) -> tuple[str, ...] | None:
        """Which group each sample is of; None where every sample stands for itself."""

    def subsets(self, _part: PartT) -> Mapping[str, NDArray[np.bool_]]:
        """Samples that are reported on their own too, by name: bool [N]."""
        return {}
