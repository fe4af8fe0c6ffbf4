"""Keyword spotting in a stream: a few words beside unknown words and silence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from entrain.deploy.tasks.contract import Recipe
from entrain.deploy.tasks.keyword import KeywordRecipe, KeywordTask

if TYPE_CHECKING:
    from entrain.models.augmentation import Augmentation
    from entrain.models.data import KeywordData
    from entrain.models.data.stream_words import StreamWords
    from entrain.models.keyword_task import KeywordSettings
    from entrain.models.training import TrainingConfig

EPOCHS = 160  # twice those of clips: a word may lie anywhere
SYNTHETIC_EPOCHS = 20


@dataclass(frozen=True)
class KeywordStreamRecipe(KeywordRecipe):
    """How a spotter is trained and quantized: as any keyword network is."""

    task: ClassVar[str] = "keyword-stream"

    @property
    def usual_epochs(self) -> int:
        """See `Recipe`."""
        return SYNTHETIC_EPOCHS if self.data == self.built_in else EPOCHS


class KeywordStreamTask(KeywordTask):
    """The network of `KeywordTask`; its last two classes are unknown words and silence."""

    recipe_type: ClassVar[type[Recipe]] = KeywordStreamRecipe
    takes: ClassVar[frozenset[str]] = frozenset({"download"})

    def load(self, recipe: KeywordRecipe) -> KeywordData:
        """The clips."""
        return stream_words(recipe).clips

    def network(self, attention: str, classes: int) -> KeywordSettings:
        """As much network as a Cortex-M4F at 120 MHz computes in a quarter of its time."""
        from entrain.models.attention import AttentionConfig
        from entrain.models.networks.keyword import KeywordConfig

        return KeywordConfig(
            AttentionConfig.parse(attention),
            classes=classes,
            channels=(24, 40),
            d_model=64,
            d_feed=128,
            dropout=0.0,
        )

    def training(self, recipe: KeywordRecipe) -> TrainingConfig:
        """See `KeywordTask`; scores that may come close to 1 tell words better apart."""
        return replace(super().training(recipe), label_smoothing=0.0)

    def augmentation(self) -> Augmentation:
        """Words wherever a window may meet them, in rooms, at any loudness."""
        from entrain.models.augmentation import Augmentation
        from entrain.models.placing import AsInAStream

        return Augmentation(
            placing=AsInAStream(),
            gain=(-1.0, 0.4),
            noise_probability=0.7,
            noise_decibels=(0.0, 25.0),
            room_probability=0.3,
            scrambled=0.1,
        )


def stream_words(recipe: Recipe) -> StreamWords:
    """What a spotter learns, is tuned with and is tested on.

    Raises:
        DataError: the folder is missing, incomplete or damaged.
        ToolError: the speech synthesizer is not installed.
    """
    from entrain.models.data.stream_words import load_stream_words, synthetic_stream_words

    if recipe.data == recipe.built_in:
        return synthetic_stream_words()
    return load_stream_words(Path(recipe.data))


def words_of(labels: tuple[str, ...]) -> tuple[str, ...]:
    """The words to be spotted, of all classes of a spotter."""
    return labels[:-2]
