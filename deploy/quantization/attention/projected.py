"""What every quantized attention shares: the maps around it, and the split into heads."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from torch import Tensor, nn

from entrain.deploy.quantization.folding import Fold, unfolded
from entrain.deploy.quantization.layers import linear, values
from entrain.models.attention.projections import ProjectedAttention


@dataclass(frozen=True)
class Heads:
    """The split of tokens into heads, in fixed numbers: the exported graph has static shapes."""

    tokens: int
    heads: int

    def split(self, x: Tensor) -> Tensor:
        """[B, T, width] to [B, H, T, width / H]."""
        return x.reshape(-1, self.tokens, self.heads, x.shape[-1] // self.heads).transpose(1, 2)

    def merge(self, x: Tensor) -> Tensor:
        """[B, H, T, d_head] to [B, T, H * d_head]."""
        return x.transpose(1, 2).reshape(-1, self.tokens, self.heads * x.shape[-1])


def scaled_scores(query: Tensor, key: Tensor) -> Tensor:
    """q_i.k_j / sqrt(d_head) of [B, H, T, d_head] each: [B, H, T, T]."""
    return query @ key.transpose(-1, -2) * (1.0 / sqrt(query.shape[-1]))


class QuantizedProjections(nn.Module):
    """Queries, keys and values of quantized tokens, and the output of the heads' contexts.

    Args:
        attention: trained.
        fold: gives a trained map as it is quantized, with what folds into it of the norm before.
        tokens: the length of every sequence.
    """

    def __init__(self, attention: ProjectedAttention, fold: Fold, tokens: int) -> None:
        super().__init__()
        self.heads = Heads(tokens, attention.heads)
        self.to_query = linear(fold(attention.query))
        self.to_key = linear(fold(attention.key))
        self.to_value = linear(fold(attention.value))
        self.to_output = linear(unfolded(attention.output))

    def merged(self, context: Tensor, quantizer: nn.Module) -> Tensor:
        """The output [B, T, d_model] of contexts [B, H, T, d_head]."""
        return values(self.to_output(quantizer(self.heads.merge(context))))
