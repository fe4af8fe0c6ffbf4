"""The first paper's keyword spotter: one linear map a frame, one attention block, a classifier.

Pasqualetti and Guo, "Attention by Synchronization in Coupled Oscillator Networks", 2026, section
4.1. Without a convolution each of the 49 tokens knows 25 ms of sound only, so what tells of
another time must come through the attention.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from entrain.models.attention import MECHANISMS, AttentionConfig
from entrain.models.networks.block import BlockStyle
from entrain.models.networks.positions import POSITIONS
from entrain.models.networks.stack import build_block, check_stack

PAPER_STYLE = BlockStyle(norm="layer", activation="gelu", dropout=0.1)


@dataclass(frozen=True)
class LinearKeywordConfig:
    """The linear keyword network's sizes; the defaults are the paper's, with nine words for ten.

    Args:
        attention: the mechanism.
        classes: number of words.
        frames: time steps of the features, each one token.
        bands: mel bands of the features.
        d_model: width of a token.
        heads: attention heads.
        d_feed: width of the feed-forward layer.
        positions: a name of `POSITIONS`.
        dropout: probability after the positions, in training.
        style: norm, activation and dropout of the block.

    Raises:
        UsageError: if a size is not positive, a name unknown or the dropout not in [0, 1).
    """

    attention: AttentionConfig
    classes: int = 9
    frames: int = 49
    bands: int = 40
    d_model: int = 32
    heads: int = 2
    d_feed: int = 128
    positions: str = "none"
    dropout: float = 0.1
    style: BlockStyle = PAPER_STYLE

    def __post_init__(self) -> None:
        check_stack(self, "a keyword network", self.classes, self.frames, self.bands)

    @property
    def tokens(self) -> int:
        """Length of the sequence that attention sees: every frame is a token."""
        return self.frames

    def build(self) -> LinearKeywordNetwork:
        """The network, with random weights."""
        return LinearKeywordNetwork(self)


class LinearKeywordNetwork(nn.Module):
    """Log-mel features of one second to a score for each word.

    A linear map of every frame; positions; dropout; one attention block; the mean over time; a
    linear classifier, without a norm between.
    """

    def __init__(self, config: LinearKeywordConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Linear(config.bands, config.d_model)
        self.positions = POSITIONS[config.positions](config.frames, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.block = build_block(config, config.frames)
        self.classifier = nn.Linear(config.d_model, config.classes)

    def forward(self, features: Tensor) -> Tensor:
        """Score words.

        Args:
            features: normalised log-mel features [B, 1, frames, bands].

        Returns:
            Logits [B, classes].
        """
        tokens = self.positions(self.embed(features.squeeze(1)))
        tokens = self.block(self.dropout(tokens))
        logits: Tensor = self.classifier(tokens.mean(dim=1))
        return logits


def count_multiply_adds(config: LinearKeywordConfig) -> int:
    """Multiply-adds of one inference: the linear maps and the attention; norms are not counted."""
    tokens, width = config.tokens, config.d_model
    embed = tokens * config.bands * width
    mechanism = MECHANISMS[config.attention.mechanism]
    attention = mechanism.multiply_adds(config.attention, width, config.heads, tokens)
    feed = 2 * tokens * width * config.d_feed
    return embed + attention + feed + width * config.classes
