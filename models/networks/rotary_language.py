"""The transformer that Kuramoto attention is measured against: rotary positions and SwiGLU.

Pre-norm with RMSNorm (Zhang and Sennrich 2019), rotary positions (Su et al. 2021), SwiGLU (Shazeer
2020), no biases. Any mechanism of `attention` takes the place of the rotary softmax.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.networks.increments import CharacterNetwork, IncrementLayer
from entrain.models.networks.swiglu import SwiGLU

ROTARY_BASE = 10_000.0
ROTARY = "rotary"
# Standard deviation of embeddings at the start. With 0.02, as is common, the first 400 steps learn
# a fifth of a bit less.
EMBEDDING_DEVIATION = 1.0


@dataclass(frozen=True)
class RotaryConfig:
    """Sizes of a `RotaryLanguage`.

    Args:
        symbols: how many there are to tell apart; 256 for bytes.
        d_model: width of a token.
        heads: among which the width is divided.
        layers: number of layers.
        d_feed: inner width of the feed-forward layers.
        context: longest text.
        attention: ``rotary``, or what `AttentionConfig.parse` reads.

    Raises:
        UsageError: if a size is not positive, a head's width is not even, or there is no such
            attention.
    """

    symbols: int = 256
    d_model: int = 128
    heads: int = 4
    layers: int = 4
    d_feed: int = 432
    context: int = 128
    attention: str = ROTARY

    def __post_init__(self) -> None:
        sizes = (self.symbols, self.d_model, self.heads, self.layers, self.d_feed, self.context)
        if min(sizes) < 1:
            raise UsageError(f"every size must be positive: {self}")
        if self.d_model % (2 * self.heads):
            raise UsageError(
                f"a width of {self.d_model} gives {self.heads} heads no even width each"
            )
        if self.attention != ROTARY:
            AttentionConfig.parse(self.attention)

    def build(self) -> RotaryLanguage:
        """The network, with random weights."""
        return RotaryLanguage(self)


def rotate(x: Tensor) -> Tensor:
    """Turn the pairs (j, j + d/2) of x [B, H, T, d] by t / base^(2 j / d) radians at place t."""
    length, width = x.shape[-2:]
    rates = ROTARY_BASE ** -(torch.arange(width // 2, dtype=x.dtype, device=x.device) * 2 / width)
    angles = torch.arange(length, dtype=x.dtype, device=x.device)[:, None] * rates
    first, second = x.chunk(2, dim=-1)
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1)


class RotaryAttention(nn.Module):
    """Causal softmax attention whose queries and keys are turned by their places."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.projections = nn.Linear(d_model, 3 * d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Attend: [B, T, d_model] to [B, T, d_model]."""
        split = self.projections(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        queries, keys, values = split.unbind()
        read = F.scaled_dot_product_attention(rotate(queries), rotate(keys), values, is_causal=True)
        output: Tensor = self.output(read.transpose(1, 2).flatten(2))
        return output


class CausalAttention(nn.Module):
    """A mechanism of the registry, told to be causal."""

    def __init__(self, config: RotaryConfig) -> None:
        super().__init__()
        mechanism = AttentionConfig.parse(config.attention)
        self.mechanism = build_attention(mechanism, config.d_model, config.heads, config.context)

    def forward(self, x: Tensor) -> Tensor:
        """Attend: [B, T, d_model] to [B, T, d_model]."""
        attended: Tensor = self.mechanism(x, causal=True)
        return attended


class RotaryLayer(IncrementLayer):
    """x + attention(norm(x)), then x + feed(norm(x))."""

    def __init__(self, config: RotaryConfig) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.d_model)
        self.attention = (
            RotaryAttention(config.d_model, config.heads)
            if config.attention == ROTARY
            else CausalAttention(config)
        )
        self.feed_norm = nn.RMSNorm(config.d_model)
        self.feed = SwiGLU(config.d_model, config.d_feed)

    def increments(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """What attention and feed-forward layer add to tokens [B, T, d_model]."""
        attended = self.attention(self.attention_norm(state))
        return attended, self.feed(self.feed_norm(state + attended))


class RotaryLanguage(CharacterNetwork):
    """Vectors from symbols, transformer layers, and a linear map to scores."""

    def __init__(self, config: RotaryConfig) -> None:
        super().__init__([RotaryLayer(config) for _ in range(config.layers)])
        self.config = config
        self.embedding = nn.Embedding(config.symbols, config.d_model)
        nn.init.normal_(self.embedding.weight, std=EMBEDDING_DEVIATION)
        self.head_norm = nn.RMSNorm(config.d_model)
        self.head = nn.Linear(config.d_model, config.symbols, bias=False)

    def embed(self, tokens: Tensor) -> Tensor:
        """The vectors [B, T, d_model] that symbols [B, T] start with."""
        embedded: Tensor = self.embedding(tokens)
        return embedded

    def score(self, state: Tensor) -> Tensor:
        """From the last vectors [B, T, d_model] to scores [B, T, symbols]."""
        scores: Tensor = self.head(self.head_norm(state))
        return scores
