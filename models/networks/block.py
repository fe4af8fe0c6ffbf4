"""One pre-norm attention block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.attention.streaming import DecoderState
from entrain.models.choices import check_choice
from entrain.models.networks.norm import NORMS

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "gelu": F.gelu}


@dataclass(frozen=True)
class BlockStyle:
    """What a block is made of beside its attention.

    The default folds into integers (batch norm and ReLU); the papers' blocks have layer norm, GELU
    and dropout behind both linear maps.

    Args:
        norm: a name of `NORMS`.
        activation: a name of `ACTIVATIONS`.
        dropout: probability behind each map of the feed-forward layer, in training.

    Raises:
        UsageError: if a name is unknown or the dropout is not in [0, 1).
    """

    norm: str = "batch"
    activation: str = "relu"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for name, value, known in (
            ("norm", self.norm, NORMS),
            ("activation", self.activation, ACTIVATIONS),
        ):
            check_choice(name, value, known)
        check_dropout(self.dropout)


def check_dropout(probability: float) -> None:
    """Raise a `UsageError` unless the probability of dropout is in [0, 1)."""
    if not 0 <= probability < 1:
        raise UsageError(f"dropout must be at least 0 and below 1, not {probability}")


class AttentionBlock(nn.Module):
    """x + attention(norm(x)), then x + contract(activation(expand(norm(x)))).

    Args:
        attention: the mechanism.
        d_model: width of a token.
        heads: number of heads.
        d_feed: width of the feed-forward layer.
        max_length: longest sequence.
        style: norm, activation and dropout.
    """

    def __init__(
        self,
        attention: AttentionConfig,
        d_model: int,
        heads: int,
        d_feed: int,
        max_length: int,
        style: BlockStyle = BlockStyle(),
    ) -> None:
        super().__init__()
        self.attention_norm = NORMS[style.norm](d_model)
        self.attention = build_attention(attention, d_model, heads, max_length)
        self.feed_norm = NORMS[style.norm](d_model)
        self.expand = nn.Linear(d_model, d_feed)
        self.contract = nn.Linear(d_feed, d_model)
        self.activation = ACTIVATIONS[style.activation]
        self.dropout = nn.Dropout(style.dropout)

    def forward(self, x: Tensor, *, padding: Tensor | None = None, causal: bool = False) -> Tensor:
        """Transform tokens x [B, T, d_model]; the masks are those of the attention."""
        x = x + self.attention(self.attention_norm(x), padding=padding, causal=causal)
        return x + self._feed(x)

    def start(self, batch: int) -> DecoderState:
        """See `AttentionMechanism.start`."""
        return self.attention.start(batch)

    def step(self, x: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """One token a sequence, x [B, d_model]: the next column of `forward` with `causal`."""
        attended, state = self.attention.step(self.attention_norm(x), state)
        x = x + attended
        return x + self._feed(x), state

    def _feed(self, x: Tensor) -> Tensor:
        expanded = self.dropout(self.activation(self.expand(self.feed_norm(x))))
        fed: Tensor = self.dropout(self.contract(expanded))
        return fed
