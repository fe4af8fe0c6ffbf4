"""The keyword network in quantized form."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from entrain.deploy.quantization.block import QuantizedBlock
from entrain.deploy.quantization.folding import Folded, norm_after, norm_before
from entrain.deploy.quantization.layers import convolution, linear, rectified, signed, values
from entrain.models.networks.block import BlockStyle
from entrain.models.networks.keyword import ConvolutionUnit, KeywordNetwork


class QuantizedKeyword(nn.Module):
    """A trained keyword network with its norms folded and every tensor in 8 bits.

    Each quantizer is named after the tensor it quantizes, so the lowered layers are called so too.
    """

    def __init__(self, network: KeywordNetwork) -> None:
        super().__init__()
        config = network.config
        self.features = signed()
        self.to_stem = _unit(network.stem)
        self.to_depthwise = _unit(network.depthwise)
        self.to_pointwise = _unit(network.pointwise)
        self.stem, self.depthwise, self.pointwise = rectified(), rectified(), rectified()
        self.to_tokens = _embedding(network)
        self.positions = nn.Parameter(network.positions.detach().t().unsqueeze(-1).clone())
        self.tokens = signed()
        self.block = QuantizedBlock(network.block, config.attention, config.tokens, BlockStyle())
        self.pooled = signed()
        self.to_logits = linear(norm_before(network.head_norm, network.classifier))
        self.logits = signed()

    def forward(self, features: Tensor) -> Tensor:
        """Normalised features [B, 1, frames, bands] to logits [B, classes]."""
        x = self.stem(self.to_stem(self.features(features)))
        x = self.depthwise(self.to_depthwise(x))
        x = self.pointwise(self.to_pointwise(x))
        embedded = values(self.to_tokens(x)) + self.positions
        tokens = self.tokens(embedded.squeeze(3).transpose(1, 2))
        fed = self.block(tokens)
        pooled = self.pooled(values(fed).mean(dim=1))
        return values(self.logits(self.to_logits(pooled)))


def _unit(unit: ConvolutionUnit) -> nn.Module:
    return convolution(norm_after(unit.convolution.weight, unit.norm), unit.convolution)


def _embedding(network: KeywordNetwork) -> nn.Module:
    """The map of each frame to a token, as a convolution over all bands of one frame."""
    channels, bands = network.config.channels[1], network.config.map_bands
    like = nn.Conv2d(channels, network.config.d_model, (1, bands))
    folded = norm_after(network.embed.weight, network.embed_norm)
    weight = folded.weight.view(-1, channels, 1, bands)
    return convolution(Folded(weight, folded.bias), like)


def new_quantized_keyword(network: KeywordNetwork) -> QuantizedKeyword:
    """The quantized form of a trained network, not calibrated yet.

    Raises:
        UsageError: the device cannot compute its attention.
    """
    with torch.no_grad():
        return QuantizedKeyword(network.eval())
