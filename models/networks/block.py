"""One pre-norm attention block."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.networks.norm import FeatureNorm


class AttentionBlock(nn.Module):
    """x + attention(norm(x)), then x + contract(relu(expand(norm(x)))).

    Args:
        attention: the mechanism.
        d_model: width of a token.
        heads: number of heads.
        d_feed: width of the feed-forward layer.
        max_length: longest sequence.
    """

    def __init__(
        self, attention: AttentionConfig, d_model: int, heads: int, d_feed: int, max_length: int
    ) -> None:
        super().__init__()
        self.attention_norm = FeatureNorm(d_model)
        self.attention = build_attention(attention, d_model, heads, max_length)
        self.feed_norm = FeatureNorm(d_model)
        self.expand = nn.Linear(d_model, d_feed)
        self.contract = nn.Linear(d_feed, d_model)

    def forward(self, x: Tensor, *, padding: Tensor | None = None, causal: bool = False) -> Tensor:
        """Transform tokens x [B, T, d_model]; the masks are those of the attention."""
        x = x + self.attention(self.attention_norm(x), padding=padding, causal=causal)
        fed: Tensor = self.contract(torch.relu(self.expand(self.feed_norm(x))))
        return x + fed
