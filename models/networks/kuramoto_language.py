"""A character model on the torus: Nunley, "Kuramoto Attention", arXiv 2606.11585.

A symbol is a point of the torus. Each layer moves the phases twice: by Kuramoto attention, and by
a SwiGLU layer that sees the raw angles. Nothing is normalised; what keeps the network steady is
that every increment is bounded. A symbol's score is how well the last phases agree with its
prototype's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention.kuramoto import KuramotoAttention, bound
from entrain.models.choices import check_choice
from entrain.models.networks.increments import CharacterNetwork, IncrementLayer
from entrain.models.networks.swiglu import SwiGLU

# Standard deviation of all phases at the start, in radians. The paper does not say; here symbols
# start near each other, so that the drift makes attention local from the start. Phases spread
# evenly over the circle learn a third of a bit less in the first 400 steps.
START_DEVIATION = 0.5


class RawAngleFeed(nn.Module):
    """The second increment of a layer: a SwiGLU layer on angles as they are, then bounded.

    It is the one place where an angle and the angle a turn further are not the same.
    """

    def __init__(self, phases: int, d_feed: int) -> None:
        super().__init__()
        self.swiglu = SwiGLU(phases, d_feed, bias=True)

    def forward(self, theta: Tensor) -> Tensor:
        """The bounded increment [B, T, H, k] of phases theta [B, T, H, k]."""
        fed: Tensor = self.swiglu(theta.flatten(2))
        return bound(fed.view_as(theta))


class NoFeed(nn.Module):
    """No second increment: the ablation without feed-forward layers."""

    def __init__(self, _phases: int, _d_feed: int) -> None:
        super().__init__()

    def forward(self, theta: Tensor) -> Tensor:
        """Zero, in the shape of theta."""
        return torch.zeros_like(theta)


# By the phases of a token and the inner width.
FEEDS: dict[str, Callable[[int, int], nn.Module]] = {"swiglu": RawAngleFeed, "none": NoFeed}


@dataclass(frozen=True)
class KuramotoConfig:
    """Sizes and parts of a `KuramotoLanguage`.

    The paper gives the number of parameters only. The sizes here make about a million.

    Args:
        symbols: how many there are to tell apart; 256 for bytes.
        phases: of a token, over all heads.
        heads: among which the phases are divided.
        layers: number of layers.
        d_feed: inner width of the feed-forward layers.
        gates: a name of `attention.kuramoto.GATES`.
        values: a name of `attention.kuramoto.VALUES`.
        feed: a name of `FEEDS`.

    Raises:
        UsageError: if a size is not positive, the phases cannot be divided among the heads, or
            there is no such feed.
    """

    symbols: int = 256
    phases: int = 128
    heads: int = 4
    layers: int = 4
    d_feed: int = 344
    gates: str = "softplus"
    values: str = "circular-mean"
    feed: str = "swiglu"

    def __post_init__(self) -> None:
        if min(self.symbols, self.phases, self.heads, self.layers, self.d_feed) < 1:
            raise UsageError(f"every size must be positive: {self}")
        if self.phases % self.heads:
            raise UsageError(f"{self.phases} phases cannot be divided among {self.heads} heads")
        check_choice("feed", self.feed, FEEDS)

    def build(self) -> KuramotoLanguage:
        """The network, with random weights."""
        return KuramotoLanguage(self)


class KuramotoLayer(IncrementLayer):
    """theta + attention(theta), then theta + feed(theta)."""

    def __init__(self, config: KuramotoConfig) -> None:
        super().__init__()
        k = config.phases // config.heads
        self.attention = KuramotoAttention(config.heads, k, config.gates, config.values)
        self.feed = FEEDS[config.feed](config.phases, config.d_feed)

    def increments(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Both increments, each [B, T, H, k], of phases [B, T, H, k]."""
        attended = self.attention(state)
        return attended, self.feed(state + attended)


class PrototypeReadOut(nn.Module):
    """A symbol's score: scale / sqrt(phases) sum_j cos(theta_j - prototype_j).

    The paper has the alignment with learned prototypes; the one learned scale is ours, without
    which the scores could not become sure.
    """

    def __init__(self, symbols: int, phases: int) -> None:
        super().__init__()
        self.prototypes = nn.Parameter(random_phases(symbols, phases))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, theta: Tensor) -> Tensor:
        """From phases [B, T, H, k] to scores [B, T, symbols]."""
        flat = theta.flatten(2)
        alignment: Tensor = (
            flat.cos() @ self.prototypes.cos().T + flat.sin() @ self.prototypes.sin().T
        )
        scores: Tensor = alignment * self.scale / flat.shape[-1] ** 0.5
        return scores


class KuramotoLanguage(CharacterNetwork):
    """Phases from symbols, layers that move them, and the agreement with prototypes."""

    def __init__(self, config: KuramotoConfig) -> None:
        super().__init__([KuramotoLayer(config) for _ in range(config.layers)])
        self.config = config
        self.phases = nn.Parameter(random_phases(config.symbols, config.phases))
        self.read_out = PrototypeReadOut(config.symbols, config.phases)

    def attentions(self) -> tuple[KuramotoAttention, ...]:
        """The attention of each layer."""
        return tuple(layer.attention for layer in self.stack() if isinstance(layer, KuramotoLayer))

    def embed(self, tokens: Tensor) -> Tensor:
        """The phases [B, T, H, k] that symbols [B, T] start with."""
        theta: Tensor = self.phases[tokens].view(*tokens.shape, self.config.heads, -1)
        return theta

    def score(self, state: Tensor) -> Tensor:
        """From the last phases [B, T, H, k] to scores [B, T, symbols]."""
        scores: Tensor = self.read_out(state)
        return scores


def random_phases(symbols: int, phases: int) -> Tensor:
    """Points of the torus about zero: [symbols, phases], in radians."""
    return START_DEVIATION * torch.randn(symbols, phases)
