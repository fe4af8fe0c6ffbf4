"""The agreement network: word embedding, attention blocks, a linear classifier at the verb."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from entrain.models.attention import AttentionConfig
from entrain.models.networks.block import BlockStyle
from entrain.models.networks.norm import NORMS
from entrain.models.networks.positions import POSITIONS
from entrain.models.networks.stack import build_block, check_stack

CLASSES = 2


@dataclass(frozen=True)
class AgreementConfig:
    """The agreement network's sizes. The defaults are the paper's smallest network.

    Args:
        attention: the mechanism.
        vocabulary: number of words.
        length: words of a sentence, padding included.
        d_model: width of a token.
        heads: attention heads.
        layers: attention blocks.
        d_feed: width of the feed-forward layers.
        positions: a name of `POSITIONS`.
        dropout: probability after the positions, in training.
        style: norm, activation and dropout of the blocks.

    Raises:
        UsageError: if a size is not positive, a name unknown or the dropout not in [0, 1).
    """

    attention: AttentionConfig
    vocabulary: int
    length: int
    d_model: int = 32
    heads: int = 1
    layers: int = 1
    d_feed: int = 64
    positions: str = "sinusoidal"
    dropout: float = 0.1
    style: BlockStyle = BlockStyle()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        # The verb stands before the last word.
        check_stack(self, "an agreement network", self.vocabulary, self.length - 1, self.layers)

    @property
    def verb(self) -> int:
        """Where the verb is: sentences are aligned on the right, and only a full stop follows."""
        return self.length - 2

    def build(self) -> AgreementNetwork:
        """The network, with random weights."""
        return AgreementNetwork(self)


class AgreementNetwork(nn.Module):
    """Words to the scores of "the verb disagrees" and "agrees" with its subject.

    Padding in front of a short sentence is a word like any other, with an embedding of its own:
    the attention needs no mask.
    """

    def __init__(self, config: AgreementConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.d_model)
        self.positions = POSITIONS[config.positions](config.length, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            build_block(config, config.length) for _ in range(config.layers)
        )
        self.head_norm = NORMS[config.style.norm](config.d_model)
        self.classifier = nn.Linear(config.d_model, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        """Score sentences: int64 [B, length] to logits [B, 2]."""
        x = self.dropout(self.positions(self.embedding(tokens)))
        for block in self.blocks:
            x = block(x)
        # A slice keeps the token axis, which the norm expects.
        verb = x[:, self.config.verb : self.config.verb + 1]
        logits: Tensor = self.classifier(self.head_norm(verb)).squeeze(1)
        return logits
