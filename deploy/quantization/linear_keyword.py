"""The linear keyword network in quantized form."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from entrain.deploy.quantization.block import QuantizedBlock
from entrain.deploy.quantization.folding import unfolded
from entrain.deploy.quantization.layers import linear, signed, values
from entrain.deploy.quantization.positions import position_table
from entrain.models.networks.linear_keyword import LinearKeywordNetwork


class QuantizedLinearKeyword(nn.Module):
    """A trained linear keyword network: a map a frame, a block, the mean over time, classes.

    Each quantizer is named after the tensor it quantizes, so the lowered layers are called so too.
    """

    def __init__(self, network: LinearKeywordNetwork) -> None:
        super().__init__()
        config = network.config
        self.shape = config.frames, config.bands
        self.features = signed()
        self.to_tokens = linear(unfolded(network.embed))
        positions = position_table(network.positions, config.tokens, config.d_model)
        self.register_buffer("positions", positions)
        self.tokens = signed()
        self.block = QuantizedBlock(network.block, config.attention, config.tokens, config.style)
        self.pooled = signed()
        self.to_logits = linear(unfolded(network.classifier))
        self.logits = signed()

    def forward(self, features: Tensor) -> Tensor:
        """Normalised features [B, 1, frames, bands] to logits [B, classes]."""
        frames = self.features(features).reshape(-1, *self.shape)
        tokens = self.tokens(values(self.to_tokens(frames)) + self.get_buffer("positions"))
        fed = self.block(tokens)
        pooled = self.pooled(values(fed).mean(dim=1))
        return values(self.logits(self.to_logits(pooled)))


def new_quantized_linear_keyword(network: LinearKeywordNetwork) -> QuantizedLinearKeyword:
    """The quantized form of a trained network, not calibrated yet.

    Raises:
        UsageError: the device cannot compute its attention.
    """
    with torch.no_grad():
        return QuantizedLinearKeyword(network.eval())
