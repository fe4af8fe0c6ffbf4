"""Attention as others write it: PyTorch's own modules, and what people write by hand."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, TOKENS = 16, 2, 7
D_HEAD = WIDTH // HEADS
SHAPE = (TOKENS, WIDTH)


def by_heads(x: torch.Tensor) -> torch.Tensor:
    """[B, T, channels] to [B, heads, T, D_HEAD]."""
    return x.view(*x.shape[:2], -1, D_HEAD).transpose(1, 2)


def merged(x: torch.Tensor) -> torch.Tensor:
    """[B, heads, T, D_HEAD] to [B, T, channels]."""
    return x.transpose(1, 2).flatten(2)


class Attention(nn.Module):
    """Three projections, heads apart, and one projection more; others change a part of it."""

    queries = keys = WIDTH

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, self.queries)
        self.key, self.value = nn.Linear(WIDTH, self.keys), nn.Linear(WIDTH, self.keys)
        self.out = nn.Linear(self.queries, WIDTH)

    def operands(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return by_heads(self.query(x)), by_heads(self.key(x)), by_heads(self.value(x))

    def context(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.transpose(-1, -2) / math.sqrt(D_HEAD)).softmax(-1) @ v

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(merged(self.context(*self.operands(x))))


class ScaledBefore(Attention):
    """The scale is on the queries."""

    def context(self, q, k, v):
        return (q * D_HEAD**-0.5 @ k.transpose(-1, -2)).softmax(-1) @ v


class ScaleInTheWeights(Attention):
    """The scale is nowhere to be seen."""

    def context(self, q, k, v):
        return (q @ k.transpose(-1, -2)).softmax(-1) @ v


class HeadsInTheBatch(Attention):
    """Three axes, the first one of them batch and heads."""

    def context(self, q, k, v):
        q, k, v = (each.reshape(-1, TOKENS, D_HEAD) for each in (q * D_HEAD**-0.5, k, v))
        context = torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v)
        return context.view(-1, HEADS, TOKENS, D_HEAD)


class KeysFirst(Attention):
    """Scores of keys by queries, normalized along the keys."""

    def context(self, q, k, v):
        weights = (k @ q.transpose(-1, -2) * D_HEAD**-0.5).softmax(-2)
        return weights.transpose(-1, -2) @ v


class Summed(Attention):
    """Both products are Einstein's sums, of heads that stay where they are."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            made(x).view(-1, TOKENS, HEADS, D_HEAD) for made in (self.query, self.key, self.value)
        )
        weights = (torch.einsum("bqhd,bkhd->bhqk", q, k) * D_HEAD**-0.5).softmax(-1)
        return self.out(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))


class OneKeyForAllHeads(Attention):
    """Multi-query attention."""

    keys = D_HEAD


class GroupedQueries(Attention):
    """Every two heads of four share keys and values."""

    queries = 2 * WIDTH

    def operands(self, x):
        q, k, v = super().operands(x)
        return q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)


class Rotated(Attention):
    """Queries and keys are rotated by their positions."""

    def __init__(self) -> None:
        super().__init__()
        frequencies = 100.0 ** (-torch.arange(0, D_HEAD, 2) / D_HEAD)
        angles = (torch.arange(TOKENS)[:, None] * frequencies).repeat(1, 2)
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def rotated(self, x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, -1)
        return x * self.cosine + torch.cat([-second, first], -1) * self.sine

    def operands(self, x):
        q, k, v = super().operands(x)
        return self.rotated(q), self.rotated(k), v


class Packed(Attention):
    """One projection makes queries, keys and values; a fused function attends."""

    def __init__(self) -> None:
        super().__init__()
        self.packed = nn.Linear(WIDTH, 3 * WIDTH)

    def operands(self, x):
        q, k, v = self.packed(x).chunk(3, -1)
        return by_heads(q), by_heads(k), by_heads(v)

    def context(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v)


class PackedByHead(Packed):
    """Query, key and value of a head side by side."""

    def operands(self, x):
        apart = self.packed(x).view(-1, TOKENS, HEADS, 3 * D_HEAD).transpose(1, 2)
        return apart.split(D_HEAD, -1)


class NormalizedHeads(Packed):
    """Queries and keys are normalized before their product."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(D_HEAD), nn.LayerNorm(D_HEAD)

    def operands(self, x):
        packed = self.packed(x).reshape(-1, TOKENS, 3, HEADS, D_HEAD)
        q, k, v = packed.permute(2, 0, 3, 1, 4).unbind(0)
        return self.first(q), self.second(k), v


class Crossed(Attention):
    """Three queries look at all tokens, whose keys and values lie in one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.both = nn.Linear(WIDTH, 2 * WIDTH)

    def operands(self, x):
        k, v = self.both(x).chunk(2, -1)
        return by_heads(self.query(x[:, :3])), by_heads(k), by_heads(v)


class Multihead(nn.Module):
    """PyTorch's module."""

    def __init__(self, *, batch_first: bool = True, need_weights: bool = False) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=batch_first)
        self.need_weights = need_weights

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch_first = self.attention.batch_first
        x = x if batch_first else x.transpose(0, 1)
        y, _ = self.attention(x, x, x, need_weights=self.need_weights)
        return y if batch_first else y.transpose(0, 1)


def encoder(layers: int = 1, *, norm_first: bool = False) -> nn.Module:
    """PyTorch's encoder."""
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, 2 * WIDTH, batch_first=True, norm_first=norm_first
    )
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


RECOGNISED = {
    "scale behind the scores": Attention,
    "scale before the scores": ScaledBefore,
    "scale in the weights": ScaleInTheWeights,
    "heads in the batch": HeadsInTheBatch,
    "keys first": KeysFirst,
    "sums of products": Summed,
    "one key for all heads": OneKeyForAllHeads,
    "rotated": Rotated,
    "packed": Packed,
    "packed head by head": PackedByHead,
    "normalized heads": NormalizedHeads,
    "keys and values packed": Crossed,
    "multihead": Multihead,
    "multihead with weights": lambda: Multihead(need_weights=True),
    "multihead, sequence first": lambda: Multihead(batch_first=False),
    "encoder layer": encoder,
    "two encoder layers, normalized first": lambda: encoder(2, norm_first=True),
}
