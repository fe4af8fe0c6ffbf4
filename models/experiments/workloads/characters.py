"""Characters of enwik8: Kuramoto attention, its ablations, and the transformer it is matched to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from torch import Tensor

from entrain.deploy.errors import DataError, UsageError
from entrain.models.characters_task import (
    TrainedCharacters,
    Windows,
    bits_per_character,
    probe,
    train_characters,
)
from entrain.models.choices import check_choice
from entrain.models.data.characters import CharacterData, load_characters
from entrain.models.experiments.workload import Outcome, Place
from entrain.models.experiments.workloads.recipe import TrainedWorkload
from entrain.models.networks.increments import CharacterNetwork
from entrain.models.networks.kuramoto_language import KuramotoConfig, KuramotoLanguage
from entrain.models.networks.parameters import count_parameters
from entrain.models.networks.rotary_language import ROTARY, RotaryConfig
from entrain.models.order import frequencies_by_depth, norms_by_depth, order_by_depth
from entrain.models.training import EpochReport, TrainingConfig


@dataclass(frozen=True)
class Characters(TrainedWorkload):
    """Train a character network, and count the bits it needs for a character of the test part.

    The data is a folder with enwik8 or its beginning; there is no built-in text. The test part is
    scored in windows that overlap by half (see `bits_per_character`).

    Args:
        network: a name of `NETWORKS`.
        attention: the transformer's: ``rotary``, or the slug of a mechanism.
        width: phases of a token, or the transformer's width.
        heads: number of heads.
        layers: number of layers.
        d_feed: inner width of the feed-forward layers.
        context: as this and the next two, of `Windows`.
        steps: batches an epoch.
        validation_characters: scored after every epoch.
        epochs: as the fields below, of `TrainingConfig`; `batch` is in windows.
    """

    network: str = "kuramoto"
    attention: str = ROTARY
    width: int = KuramotoConfig.phases
    heads: int = KuramotoConfig.heads
    layers: int = KuramotoConfig.layers
    d_feed: int = KuramotoConfig.d_feed
    context: int = Windows.context
    steps: int = Windows.steps
    validation_characters: int = Windows.validation
    epochs: int = 20
    warmup_epochs: int = 1
    peak_rate: float = 4e-3
    batch: int = 8
    clip: float = TrainingConfig.clip

    def __post_init__(self) -> None:
        check_choice("network", self.network, NETWORKS)
        if self.attention != ROTARY and self.network != "transformer":
            raise UsageError(f"the network {self.network!r} has its own attention")
        # Settings that make no sense are told before anything is trained.
        self.settings()
        self.training(0)
        self.windows()

    def settings(self) -> KuramotoConfig | RotaryConfig:
        """The network's configuration."""
        return NETWORKS[self.network](self)

    def windows(self) -> Windows:
        """What of the text is seen."""
        return Windows(self.context, self.steps, self.validation_characters)

    def training(self, seed: int) -> TrainingConfig:
        """How the network is trained with this seed."""
        recipe = super().training(seed)
        return replace(recipe, label_smoothing=0.0, clip=self.clip)

    def measure(self, seed: int, place: Place, on_epoch: Callable[[EpochReport], None]) -> Outcome:
        """Train with this seed and measure.

        Raises:
            DataError: no folder is given, or it has no text of enwik8.
            TrainingDiverged: the loss is no longer a number.
            KeyboardInterrupt: interrupted; the snapshot has what was done.
        """
        data = load_text(place.data)
        trained: TrainedCharacters[CharacterNetwork] = train_characters(
            data, self.settings(), self.windows(), self.training(seed), on_epoch, place.snapshot
        )
        if trained.interrupted:
            raise KeyboardInterrupt
        return outcome(trained, data, self.context)


@cache
def load_text(folder: Path | None) -> CharacterData:
    """The text of the folder.

    Raises:
        DataError: there is no folder, or no text in it.
    """
    if folder is None:
        raise DataError(
            "characters need the text of enwik8, and none comes with Entrain",
            remedy="Unpack http://mattmahoney.net/dc/enwik8.zip and name its folder with "
            "--data-dir.",
        )
    return load_characters(folder)


def outcome(
    trained: TrainedCharacters[CharacterNetwork], data: CharacterData, context: int
) -> Outcome:
    """What a training came to: figures of the test part, and curves by epoch and by layer.

    Norms are root mean squares over a token's coordinates, the largest over all tokens of a few
    windows: by epoch of the validation part and over layers, by layer of the test part.
    """
    network = trained.network
    tokens, _ = probe(data.test, context)
    norms = norms_by_depth(network, tokens)
    gradients = tuple(row.gradient for row in trained.norms)
    metrics = {
        "bits": bits_per_character(network, data.test, context),
        "parameters": float(count_parameters(network)),
        "validation_bits": -trained.history[-1].validation,
        "largest_increment": max(max(row.attention, row.feed) for row in trained.norms),
        "gradient_growth": max(gradients) / gradients[0],
    }
    curves = {
        "loss": tuple(report.loss for report in trained.history),
        "validation_bits": tuple(-report.validation for report in trained.history),
        "attention_norm": tuple(row.attention for row in trained.norms),
        "feed_norm": tuple(row.feed for row in trained.norms),
        "state_norm": tuple(row.state for row in trained.norms),
        "gradient_norm": gradients,
        "attention_norm_by_depth": norms.attention,
        "feed_norm_by_depth": norms.feed,
        "state_norm_by_depth": norms.state,
    }
    if isinstance(network, KuramotoLanguage):
        curves |= phase_curves(network, tokens)
    return Outcome(metrics, curves)


def phase_curves(network: KuramotoLanguage, tokens: Tensor) -> dict[str, tuple[float, ...]]:
    """Order parameters and frequencies by layer, which only a network of phases has."""
    order = order_by_depth(network, tokens)
    return {
        "local_order": order.local,
        "global_order": order.whole,
        "frequency": frequencies_by_depth(network),
    }


def _kuramoto(
    gates: str = "softplus", values: str = "circular-mean", feed: str = "swiglu"
) -> Callable[[Characters], KuramotoConfig]:
    """The network of these parts, in the workload's sizes."""

    def settings(workload: Characters) -> KuramotoConfig:
        return KuramotoConfig(
            phases=workload.width,
            heads=workload.heads,
            layers=workload.layers,
            d_feed=workload.d_feed,
            gates=gates,
            values=values,
            feed=feed,
        )

    return settings


def _transformer(workload: Characters) -> RotaryConfig:
    return RotaryConfig(
        d_model=workload.width,
        heads=workload.heads,
        layers=workload.layers,
        d_feed=workload.d_feed,
        context=workload.context,
        attention=workload.attention,
    )


NETWORKS: dict[str, Callable[[Characters], KuramotoConfig | RotaryConfig]] = {
    "kuramoto": _kuramoto(),
    "kuramoto-linear-value": _kuramoto(values="linear"),
    "kuramoto-no-feed": _kuramoto(feed="none"),
    "kuramoto-no-gates": _kuramoto(gates="none"),
    "transformer": _transformer,
}
