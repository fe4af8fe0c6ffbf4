"""One attention block in quantized form, for every network."""

from __future__ import annotations

from typing import Any

from torch import nn

from entrain.deploy.quantization.activations import ACTIVATIONS
from entrain.deploy.quantization.deployable import quantized_form
from entrain.deploy.quantization.folding import unfolded
from entrain.deploy.quantization.layers import linear, signed, values
from entrain.deploy.quantization.norms import NORMS
from entrain.models.attention import AttentionConfig
from entrain.models.networks.block import AttentionBlock, BlockStyle


class QuantizedBlock(nn.Module):
    """A trained block with every tensor in 8 bits and of its norms only what does not fold.

    Args:
        block: trained.
        attention: its mechanism.
        tokens: the length of every sequence.
        style: its norm and activation.
    """

    def __init__(
        self, block: AttentionBlock, attention: AttentionConfig, tokens: int, style: BlockStyle
    ) -> None:
        super().__init__()
        norm, feed_norm = (NORMS[style.norm](n) for n in (block.attention_norm, block.feed_norm))
        self.attention_norm, self.feed_norm = norm.computed, feed_norm.computed
        self.attention = quantized_form(attention)(block.attention, norm.before, tokens)
        self.attended = signed()
        self.to_expanded = linear(feed_norm.before(block.expand))
        self.expanded = ACTIVATIONS[style.activation]()
        self.to_contracted = linear(unfolded(block.contract))
        self.fed = signed()

    def forward(self, tokens: Any) -> Any:
        """Quantized tokens [B, T, d_model] to the same."""
        attended = self.attended(values(tokens) + self.attention(self.attention_norm(tokens)))
        expanded = self.expanded(self.to_expanded(self.feed_norm(attended)))
        return self.fed(values(attended) + values(self.to_contracted(expanded)))
