"""The agreement network in quantized form."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from entrain.deploy.quantization.block import QuantizedBlock
from entrain.deploy.quantization.layers import embedding, linear, signed, values
from entrain.deploy.quantization.norms import NORMS
from entrain.deploy.quantization.positions import position_table
from entrain.models.networks.agreement import AgreementNetwork
from entrain.models.networks.block import AttentionBlock


class QuantizedAgreement(nn.Module):
    """A trained agreement network: an int8 table of words, blocks, and the verb's read-out.

    Each quantizer is named after the tensor it quantizes, so the lowered layers are called so too.
    """

    def __init__(self, network: AgreementNetwork) -> None:
        super().__init__()
        config = network.config
        self.place = config.verb
        self.embedding = embedding(network.embedding.weight)
        positions = position_table(network.positions, config.length, config.d_model)
        self.register_buffer("positions", positions)
        self.tokens = signed()
        self.blocks = nn.ModuleList(
            QuantizedBlock(
                cast(AttentionBlock, block), config.attention, config.length, config.style
            )
            for block in network.blocks
        )
        self.verb = signed()
        norm = NORMS[config.style.norm](network.head_norm)
        self.head_norm = norm.computed
        self.to_logits = linear(norm.before(network.classifier))
        self.logits = signed()

    def forward(self, tokens: Tensor) -> Tensor:
        """Words by their numbers, int64 [B, length], to logits [B, 2]."""
        x = self.tokens(values(self.embedding(tokens)) + self.get_buffer("positions"))
        for block in self.blocks:
            x = block(x)
        verb = self.verb(values(x)[:, self.place])
        return values(self.logits(self.to_logits(self.head_norm(verb))))


def new_quantized_agreement(network: AgreementNetwork) -> QuantizedAgreement:
    """The quantized form of a trained network, not calibrated yet.

    Raises:
        UsageError: the device cannot compute its attention.
    """
    with torch.no_grad():
        return QuantizedAgreement(network.eval())
