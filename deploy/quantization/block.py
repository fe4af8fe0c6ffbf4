"""One attention block in quantized form, for every network."""

from __future__ import annotations

from typing import Any

from torch import nn

from entrain.deploy.quantization.deployable import quantized_form
from entrain.deploy.quantization.folding import norm_before, unfolded
from entrain.deploy.quantization.layers import linear, rectified, signed, values
from entrain.models.attention import AttentionConfig
from entrain.models.networks.block import AttentionBlock


class QuantizedBlock(nn.Module):
    """A trained block with its norms folded and every tensor in 8 bits.

    Args:
        block: of batch norm and ReLU.
        attention: its mechanism.
        tokens: the length of every sequence.
    """

    def __init__(self, block: AttentionBlock, attention: AttentionConfig, tokens: int) -> None:
        super().__init__()
        self.attention = quantized_form(attention)(block.attention, block.attention_norm, tokens)
        self.attended = signed()
        self.to_expanded = linear(norm_before(block.feed_norm, block.expand))
        self.expanded = rectified()
        self.to_contracted = linear(unfolded(block.contract))
        self.fed = signed()

    def forward(self, tokens: Any) -> Any:
        """Quantized tokens [B, T, d_model] to the same."""
        attended = self.attended(values(tokens) + self.attention(tokens))
        expanded = self.expanded(self.to_expanded(attended))
        return self.fed(values(attended) + values(self.to_contracted(expanded)))
