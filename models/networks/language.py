"""The word-level language model: embedding, causal attention blocks, a score for every word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig
from entrain.models.attention.streaming import DecoderState
from entrain.models.networks.block import AttentionBlock, BlockStyle
from entrain.models.networks.norm import NORMS
from entrain.models.networks.positions import POSITIONS
from entrain.models.networks.stack import build_block, check_stack

PAPERS_STYLE = BlockStyle("layer", "gelu", 0.1)


@dataclass(frozen=True)
class LanguageConfig:
    """The language model's sizes. The defaults are the paper's (WikiText-2).

    Args:
        attention: the mechanism.
        vocabulary: number of words.
        context: longest sequence for which there are positions and learned anchors.
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
    context: int = 50
    d_model: int = 128
    heads: int = 4
    layers: int = 2
    d_feed: int = 512
    positions: str = "sinusoidal"
    dropout: float = 0.1
    style: BlockStyle = PAPERS_STYLE

    def __post_init__(self) -> None:
        check_stack(self, "a language model", self.vocabulary, self.context, self.layers)

    def build(self) -> LanguageNetwork:
        """The network, with random weights."""
        return LanguageNetwork(self)


class LanguageNetwork(nn.Module):
    """Words to scores of the word that follows each.

    Without positions, and with a mechanism of running sums whose anchors have no end
    (``oscillator-separable-rotation``, ``linear-elu`` and the like), `step` decodes texts of any
    length in constant memory.
    """

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.d_model)
        self.positions = POSITIONS[config.positions](config.context, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            build_block(config, config.context) for _ in range(config.layers)
        )
        self.head_norm = NORMS[config.style.norm](config.d_model)
        self.head = nn.Linear(config.d_model, config.vocabulary)

    def forward(self, words: Tensor, *, padding: Tensor | None = None) -> Tensor:
        """Score the next words.

        Args:
            words: int64 [B, T].
            padding: bool [B, T], true for real words; None if all are.

        Returns:
            Logits [B, T, vocabulary]; those at t depend on the words up to t.
        """
        x = self.dropout(self.positions(self.embedding(words)))
        for block in self.blocks:
            x = block(x, padding=padding, causal=True)
        logits: Tensor = self.head(self.head_norm(x))
        return logits

    def start(self, batch: int) -> tuple[DecoderState, ...]:
        """The decoder's state before the first word, one a block, for `batch` texts side by side.

        Raises:
            UsageError: the mechanism needs the keys of all earlier words, or the network adds
                positions, which end.
        """
        if self.config.positions != "none":
            raise UsageError(
                f"a network with {self.config.positions} positions cannot be decoded without end",
                remedy='Build it with positions "none": anchors by rotation know places too.',
            )
        return tuple(cast("AttentionBlock", block).start(batch) for block in self.blocks)

    def step(
        self, words: Tensor, states: tuple[DecoderState, ...]
    ) -> tuple[Tensor, tuple[DecoderState, ...]]:
        """Decode one word a text: the next column of `forward`.

        Args:
            words: int64 [B].
            states: from `start`, or from the step before; their size does not grow.

        Returns:
            Logits [B, vocabulary], and the states for the next step.
        """
        x = self.embedding(words)
        after = []
        for block, state in zip(self.blocks, states, strict=True):
            x, following = cast("AttentionBlock", block).step(x, state)
            after.append(following)
        logits: Tensor = self.head(self.head_norm(x))
        return logits, tuple(after)
