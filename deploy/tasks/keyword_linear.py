"""Keyword spotting without a convolution: the first paper's network, 49 tokens of 25 ms each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from entrain.deploy.tasks.contract import Recipe
from entrain.deploy.tasks.keyword import KeywordRecipe, KeywordTask

if TYPE_CHECKING:
    from torch import nn

    from entrain.models.checkpoint import Checkpoint
    from entrain.models.keyword_task import KeywordSettings

# So that mechanisms without anchors know the order of the frames too.
POSITIONS = "sinusoidal"


@dataclass(frozen=True)
class KeywordLinearRecipe(KeywordRecipe):
    """How a linear keyword network is trained and quantized: as a convolutional one is."""

    task: ClassVar[str] = "keyword-linear"


class KeywordLinearTask(KeywordTask):
    """The same clips and words as `KeywordTask`, for the linear network."""

    recipe_type: ClassVar[type[Recipe]] = KeywordLinearRecipe

    def network(self, attention: str, classes: int) -> KeywordSettings:
        """See `KeywordTask`."""
        from entrain.models.attention import AttentionConfig
        from entrain.models.networks.linear_keyword import LinearKeywordConfig

        mechanism = AttentionConfig.parse(attention)
        return LinearKeywordConfig(mechanism, classes=classes, positions=POSITIONS)

    def quantized(self, checkpoint: Checkpoint) -> nn.Module:
        """See `Task`."""
        from entrain.deploy.quantization.linear_keyword import new_quantized_linear_keyword
        from entrain.models.networks.linear_keyword import LinearKeywordNetwork

        network = checkpoint.build_network()
        assert isinstance(network, LinearKeywordNetwork)  # by networks.TASKS
        return new_quantized_linear_keyword(network)
