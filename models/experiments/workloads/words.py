"""Words of WikiText-2 and TinyStories: language models with any attention mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from entrain.deploy.errors import DataError
from entrain.models.attention import AttentionConfig
from entrain.models.data.text import CORPORA, TextData, chunks, load_text
from entrain.models.experiments.workload import Outcome, Place
from entrain.models.experiments.workloads.recipe import TrainedWorkload
from entrain.models.language_task import perplexity, train_language
from entrain.models.networks.block import BlockStyle
from entrain.models.networks.language import LanguageConfig
from entrain.models.networks.parameters import count_parameters
from entrain.models.training import EpochReport, TrainingConfig


@dataclass(frozen=True)
class Words(TrainedWorkload):
    """Train a word-level language model, and take its perplexity on the test part.

    The data is a folder with files of the corpus; there is no built-in text. Perplexities are those
    of the last epoch's weights, over pieces of `context` words between the words for begin and end,
    which count as words to be foretold, as in the paper.

    Args:
        attention: the slug of a mechanism.
        corpus: a name of `CORPORA`.
        vocabulary: as `load_text` takes it.
        context: words of a piece.
        positions: a name of `POSITIONS`.
        d_model: as the next four, of `LanguageConfig`.
        heads: attention heads.
        layers: attention blocks.
        d_feed: width of the feed-forward layers.
        dropout: in training, behind the positions and in the blocks.
        epochs: as the fields below, of `TrainingConfig`; `batch` is in pieces.
    """

    attention: str = "softmax"
    corpus: str = "wikitext-2"
    vocabulary: int = 10_000
    context: int = 50
    positions: str = "sinusoidal"
    d_model: int = 128
    heads: int = 4
    layers: int = 2
    d_feed: int = 512
    dropout: float = 0.1
    epochs: int = 30
    warmup_epochs: int = 0
    peak_rate: float = 5e-4
    weight_decay: float = 1e-4
    batch: int = 64
    clip: float = 1.0

    def __post_init__(self) -> None:
        # Settings that make no sense are told before anything is trained.
        self.network(self.vocabulary)
        self.training(0)

    def network(self, vocabulary: int) -> LanguageConfig:
        """The network's configuration for so many words."""
        return LanguageConfig(
            attention=AttentionConfig.parse(self.attention),
            vocabulary=vocabulary,
            context=self.context,
            d_model=self.d_model,
            heads=self.heads,
            layers=self.layers,
            d_feed=self.d_feed,
            positions=self.positions,
            dropout=self.dropout,
            style=BlockStyle("layer", "gelu", self.dropout),
        )

    def training(self, seed: int) -> TrainingConfig:
        """How the network is trained with this seed."""
        recipe = super().training(seed)
        return replace(recipe, label_smoothing=0.0, clip=self.clip)

    def measure(self, seed: int, place: Place, on_epoch: Callable[[EpochReport], None]) -> Outcome:
        """Train with this seed and measure.

        Raises:
            DataError: no folder is given, or it has no file of the corpus.
            TrainingDiverged: the loss is no longer a number.
            KeyboardInterrupt: interrupted; the snapshot has what was done.
        """
        data = read_text(place.data, self.corpus, self.vocabulary)
        trained = train_language(
            data,
            self.network(len(data.vocabulary)),
            self.training(seed),
            on_epoch,
            place.snapshot,
        )
        if trained.interrupted:
            raise KeyboardInterrupt
        by_epoch = tuple(math.exp(-report.validation) for report in trained.history)
        return Outcome(
            metrics={
                "perplexity": perplexity(trained.network, chunks(data.test, self.context)),
                "validation": by_epoch[-1],
                # The paper reports the best epoch of its validation part.
                "best_validation": min(by_epoch),
                "parameters": float(count_parameters(trained.network)),
            },
            curves={
                "loss": tuple(report.loss for report in trained.history),
                "validation": by_epoch,
            },
        )


@cache
def read_text(folder: Path | None, corpus: str, vocabulary: int) -> TextData:
    """The corpus of the folder.

    Raises:
        DataError: there is no folder, or no file of the corpus in it.
    """
    if folder is None:
        raise DataError(
            f"{corpus} is not part of Entrain",
            remedy=f"Get it from {CORPORA[corpus].address} and name its folder with --data-dir.",
        )
    return load_text(folder, corpus, vocabulary)
