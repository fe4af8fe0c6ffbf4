"""The linear maps around softmax and oscillator attention, and their split into heads."""

from __future__ import annotations

from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.mechanism import AttentionMechanism


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[B, T, d_model] to [B, heads, T, d_head]."""
    batch, length, width = x.shape
    return x.view(batch, length, heads, width // heads).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """[B, heads, T, d_head] to [B, T, d_model]."""
    return x.transpose(1, 2).flatten(2)


class ProjectedAttention(AttentionMechanism):
    """Biased maps to queries, keys and values, and from the heads' read-outs to the output.

    Raises:
        UsageError: if the width cannot be divided among the heads.
    """

    def __init__(self, config: AttentionConfig, d_model: int, heads: int, max_length: int) -> None:
        super().__init__(config, d_model, heads, max_length)
        if heads < 1 or d_model % heads:
            raise UsageError(f"a width of {d_model} cannot be divided among {heads} heads")
        self.heads = heads
        self.d_head = d_model // heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of x [B, T, d_model], each [B, heads, T, d_head]."""
        return (
            split_heads(self.query(x), self.heads),
            split_heads(self.key(x), self.heads),
            split_heads(self.value(x), self.heads),
        )
