"""The linear maps around attention, their split into heads, and the scores between them."""

from __future__ import annotations

from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.mechanism import AttentionMechanism


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[B, T, width] to [B, heads, T, width / heads]."""
    batch, length, width = x.shape
    return x.view(batch, length, heads, width // heads).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """[B, heads, T, d_head] to [B, T, d_model]."""
    merged: Tensor = x.transpose(1, 2).flatten(2)
    return merged


def scaled_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """q_i.k_j / sqrt(d_head) of [B, heads, T, d_head] each: [B, heads, T, T]."""
    scores: Tensor = queries @ keys.transpose(-1, -2) / queries.shape[-1] ** 0.5
    return scores


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
        d_keys = heads * self.d_key(config, self.d_head)
        self.query = nn.Linear(d_model, d_keys)
        self.key = nn.Linear(d_model, d_keys)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    @staticmethod
    def d_key(config: AttentionConfig, d_head: int) -> int:  # noqa: ARG004
        """Components of a query or key in a head."""
        return d_head

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys [B, heads, T, d_key], and values [B, heads, T, d_head], of tokens."""
        return (
            split_heads(self.query(x), self.heads),
            split_heads(self.key(x), self.heads),
            split_heads(self.value(x), self.heads),
        )

    def merge(self, read: Tensor) -> Tensor:
        """The output [B, T, d_model] of the heads' read-outs [B, heads, T, d_head]."""
        output: Tensor = self.output(merge_heads(read))
        return output
