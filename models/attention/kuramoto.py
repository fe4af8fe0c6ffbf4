"""Kuramoto attention: tokens are points of a torus, and attend by pulling at each other's phases.

Nunley, "Kuramoto Attention: Synchronizing Self-Attention on the Torus", arXiv 2606.11585. Token t
has the phases theta_t [heads, k]. With gates gq, gk > 0 and a drift omega, of one head,

    s_tu = tau / sqrt(k) sum_j gq_tj gk_uj cos(theta_tj - theta_uj + omega_j (t - u)),
    A    = causal softmax of s,
    a_tj = sum_{u <= t} A_tu sin(theta_uj - theta_tj),

which is Kuramoto's coupling. The increment is a, times a signed value gate, bounded. Attention to
itself moves no phase, so that a token that looks nowhere else stays where it is.

The cosine of a difference is the dot product of (cos, sin) pairs, so that s is an ordinary dot
product of drifted, gated pairs and all of torch's attention kernels apply.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from entrain.deploy.errors import UsageError

# The paper does not say where the frequencies start; here, at those of rotary positions (Su et al.
# 2021): from one radian a token down to almost none.
DRIFT_BASE = 10_000.0
# Nor how an increment is bounded. Here its root mean square over the token's phases stays below
# this many radians, for attention and feed-forward alike.
RADIUS = 1.0


def phase_features(theta: Tensor) -> Tensor:
    """(cos, sin) of all phases of a token: [B, T, H, k] to [B, T, 2 H k]."""
    flat = theta.flatten(2)
    return torch.cat([flat.cos(), flat.sin()], dim=-1)


def bound(increment: Tensor, radius: float = RADIUS) -> Tensor:
    """Scale a token's increment [B, T, H, k] so that its root mean square stays below `radius`.

    x / sqrt(1 + rms(x)^2 / radius^2): small ones pass as they are, the direction is kept, and the
    norm tends to radius sqrt(H k), the same for both increments of a layer. The paper bounds
    by matching norms; we know of no formula.
    """
    mean_square = increment.square().mean(dim=(-2, -1), keepdim=True)
    return increment * torch.rsqrt(1 + mean_square / radius**2)


def drift_frequencies(k: int) -> Tensor:
    """The frequencies omega [k] that a head starts with, in radians a token."""
    return DRIFT_BASE ** -(torch.arange(k) / k)


class MetricGates(nn.Module):
    """How much each coordinate counts, for the token as one that looks and as one looked at.

    The paper has softplus of phase features with mean normalisation; here the features are the
    (cos, sin) of all the token's phases through one biased linear map, and the mean is taken over
    the coordinates of a head.
    """

    def __init__(self, heads: int, k: int) -> None:
        super().__init__()
        self.heads = heads
        self.map = nn.Linear(2 * heads * k, 2 * heads * k)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """From features [B, T, 2 H k] to the gates gq and gk [B, T, H, k], each of mean one."""
        batch, length, _ = features.shape
        strengths = F.softplus(self.map(features)).view(batch, length, 2, self.heads, -1)
        gates = strengths / strengths.mean(dim=-1, keepdim=True)
        looking, looked_at = gates.unbind(dim=2)
        return looking, looked_at


class NoGates(nn.Module):
    """All coordinates count alike: the ablation without metric gates."""

    def __init__(self, heads: int, k: int) -> None:
        super().__init__()
        self.shape = (heads, k)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Ones in place of both gates, [1, 1, H, k]."""
        ones = features.new_ones(1, 1, *self.shape)
        return ones, ones


class Values(nn.Module, ABC):
    """What a token gathers from those it sees, and how that becomes an increment."""

    @abstractmethod
    def gathered(self, theta: Tensor, features: Tensor) -> Tensor:
        """What each token offers, [B, T, H, C]; attention gives its mean by the weights A."""

    @abstractmethod
    def increment(self, theta: Tensor, features: Tensor, mean: Tensor) -> Tensor:
        """The increment [B, T, H, k], not yet bounded, of the mean [B, T, H, C]."""


class CircularMean(Values):
    """The mean of e^{i theta}, and the pull towards it: v(theta_t) a_t.

    The paper does not say what the signed value gate v is; here a biased linear map of the
    (cos, sin) features that starts about one, so that a layer starts as Kuramoto's coupling.
    """

    def __init__(self, heads: int, k: int) -> None:
        super().__init__()
        self.gate = nn.Linear(2 * heads * k, heads * k)
        nn.init.ones_(self.gate.bias)

    def gathered(self, theta: Tensor, features: Tensor) -> Tensor:  # noqa: ARG002
        """(cos, sin) of the phases, [B, T, H, 2 k]."""
        return torch.cat([theta.cos(), theta.sin()], dim=-1)

    def increment(self, theta: Tensor, features: Tensor, mean: Tensor) -> Tensor:
        """The gate times `kuramoto_pull`."""
        gate: Tensor = self.gate(features)
        return gate.view_as(theta) * kuramoto_pull(theta, mean)


class LinearValue(Values):
    """A learned projection of the features: the ablation without the circular mean.

    What is gathered is a linear map of the (cos, sin) features, as in a transformer, and it is the
    increment, wherever the gathering token's own phases stand. As many parameters as
    `CircularMean`.
    """

    def __init__(self, heads: int, k: int) -> None:
        super().__init__()
        self.projection = nn.Linear(2 * heads * k, heads * k)

    def gathered(self, theta: Tensor, features: Tensor) -> Tensor:
        """The projected features, [B, T, H, k]."""
        projected: Tensor = self.projection(features)
        return projected.view_as(theta)

    def increment(self, theta: Tensor, features: Tensor, mean: Tensor) -> Tensor:  # noqa: ARG002
        """The mean as it is."""
        return mean


def kuramoto_pull(theta: Tensor, mean: Tensor) -> Tensor:
    """The pull a = -sin(theta) Re G + cos(theta) Im G = sum_u A_tu sin(theta_u - theta_t).

    Args:
        theta: phases [B, T, H, k].
        mean: the real and the imaginary part of G = sum_u A_tu e^{i theta_u}, [B, T, H, 2 k].

    Returns:
        [B, T, H, k], within [-1, 1].
    """
    real, imaginary = mean.chunk(2, dim=-1)
    return theta.cos() * imaginary - theta.sin() * real


# By heads and phases a head.
GATES: dict[str, Callable[[int, int], nn.Module]] = {"softplus": MetricGates, "none": NoGates}
VALUES: dict[str, Callable[[int, int], Values]] = {
    "circular-mean": CircularMean,
    "linear": LinearValue,
}


class KuramotoAttention(nn.Module):
    """Causal attention between phases. Shifting any phase by 2 pi changes nothing.

    Args:
        heads: number of heads. The paper does not say whether it has any; here each head has its
            own k phases, attends by them and moves them; the gates see the phases of all heads.
        k: phases a head.
        gates: a name of `GATES`.
        values: a name of `VALUES`.

    Raises:
        UsageError: if a name is unknown.
    """

    def __init__(
        self, heads: int, k: int, gates: str = "softplus", values: str = "circular-mean"
    ) -> None:
        super().__init__()
        for kind, name, known in (("gates", gates, GATES), ("values", values, VALUES)):
            if name not in known:
                raise UsageError(
                    f"Kuramoto attention has no {kind} {name!r}",
                    remedy=f"Choose one of: {', '.join(known)}.",
                )
        self.gates = GATES[gates](heads, k)
        self.values = VALUES[values](heads, k)
        self.frequencies = nn.Parameter(drift_frequencies(k).repeat(heads, 1))
        # tau = e^sharpness, one a head; the paper does not say how tau is learned.
        self.sharpness = nn.Parameter(torch.zeros(heads, 1))

    def forward(self, theta: Tensor) -> Tensor:
        """The bounded increment [B, T, H, k] of phases theta [B, T, H, k]."""
        features = phase_features(theta)
        queries, keys = self._pairs(theta, features)
        offered = self.values.gathered(theta, features)
        mean = F.scaled_dot_product_attention(
            queries, keys, offered.transpose(1, 2), is_causal=True, scale=1.0
        ).transpose(1, 2)
        return bound(self.values.increment(theta, features, mean))

    def weights(self, theta: Tensor) -> Tensor:
        """The attention A [B, H, T, T] of phases theta [B, T, H, k]; a row sums to one."""
        queries, keys = self._pairs(theta, phase_features(theta))
        scores = queries @ keys.transpose(-1, -2)
        length = theta.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=theta.device).triu(1)
        return scores.masked_fill(future, -torch.inf).softmax(dim=-1)

    def _pairs(self, theta: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys [B, H, T, 2 k] whose dot products are the scores."""
        looking, looked_at = self.gates(features)
        places = torch.arange(theta.shape[1], device=theta.device, dtype=theta.dtype)
        drifted = theta + places[:, None, None] * self.frequencies
        cosine, sine = drifted.cos(), drifted.sin()
        looking = looking * self.sharpness.exp() / theta.shape[-1] ** 0.5
        queries = torch.cat([looking * cosine, looking * sine], dim=-1)
        keys = torch.cat([looked_at * cosine, looked_at * sine], dim=-1)
        return queries.transpose(1, 2), keys.transpose(1, 2)
