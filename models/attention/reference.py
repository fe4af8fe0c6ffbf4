"""The mechanisms' equations as printed, one line each: what the fast forms are held to.

Slow, and with every weight written out; in float64 it is exact to about 1e-15.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from entrain.models.attention.config import AttentionConfig


def scores(queries: Tensor, keys: Tensor) -> Tensor:
    """s_ij = q_i.k_j / sqrt(d_head) of queries and keys [..., T, d_head]: [..., T, T]."""
    root = torch.tensor(queries.shape[-1], dtype=queries.dtype).sqrt()
    return torch.einsum("...id,...jd->...ij", queries, keys) / root


def coupling_weights(queries: Tensor, keys: Tensor, config: AttentionConfig) -> Tensor:
    """w_ij of the oscillator's queries and keys [..., T, d_head]: [..., T, T].

    softplus(s_ij), relu(s_ij) + epsilon, or relu(q_i).relu(k_j) / sqrt(d_head) + epsilon.
    """
    s = scores(queries, keys)
    forms = {
        "softplus": torch.log1p(torch.exp(-s.abs())) + s.clamp(min=0),
        "relu": s.clamp(min=0) + config.epsilon,
        "separable": scores(queries.clamp(min=0), keys.clamp(min=0)) + config.epsilon,
    }
    return forms[str(config.coupling)]


def oscillator_weights(
    queries: Tensor, keys: Tensor, anchors: Tensor, mask: Tensor, config: AttentionConfig
) -> Tensor:
    """The oscillator's attention weights a_ij, each row summing to 1.

    Args:
        queries: q [B, H, T, d_head].
        keys: k [B, H, T, d_head].
        anchors: unit vectors r [H, T, d_osc].
        mask: [B, 1, T, T], 1 where i sees j, else 0; it multiplies both w and the read-out.
        config: coupling, exponent and epsilon.

    Returns:
        a [B, H, T, T].
    """
    couplings = coupling_weights(queries, keys, config) * mask
    fields = torch.einsum("bhij,hjc->bhic", couplings, anchors)
    lengths = fields.square().sum(dim=-1, keepdim=True).sqrt()
    states = torch.where(lengths > 0, fields / lengths, torch.zeros_like(fields))
    closeness = 1 + torch.einsum("bhic,hjc->bhij", states, anchors)
    unscaled = closeness.clamp(min=0) ** config.exponent * mask
    return unscaled / unscaled.sum(dim=-1, keepdim=True)


def _products(features: Callable[[Tensor], Tensor], queries: Tensor, keys: Tensor) -> Tensor:
    return torch.einsum("...if,...jf->...ij", features(queries), features(keys))


def _elu_plus_one(x: Tensor) -> Tensor:
    return torch.where(x > 0, x + 1, torch.exp(x.clamp(max=0)))


# What each row of weights is, before it is divided by its sum.
_STRENGTHS: dict[tuple[str, str | None], Callable[[Tensor, Tensor, float], Tensor]] = {
    ("softmax", None): lambda q, k, _: torch.exp(scores(q, k)),
    ("softmax-base2", None): lambda q, k, _: torch.exp2(scores(q, k)),
    ("relu-normalised", None): lambda q, k, epsilon: scores(q, k).clamp(min=0) + epsilon,
    ("linear", "relu"): lambda q, k, epsilon: _products(lambda x: x.clamp(min=0) + epsilon, q, k),
    ("linear", "elu"): lambda q, k, _: _products(_elu_plus_one, q, k),
}
_STRENGTHS["lowrank", "relu"] = _STRENGTHS["linear", "relu"]
_STRENGTHS["lowrank", "elu"] = _STRENGTHS["linear", "elu"]


def rival_weights(queries: Tensor, keys: Tensor, mask: Tensor, config: AttentionConfig) -> Tensor:
    """The attention weights a_ij of the mechanisms without oscillators, each row summing to 1.

    Args:
        queries: q [B, H, T, d_key].
        keys: k [B, H, T, d_key].
        mask: [B, 1, T, T], 1 where i sees j, else 0.
        config: mechanism, coupling and epsilon.

    Returns:
        a [B, H, T, T].
    """
    unscaled = _STRENGTHS[config.mechanism, config.coupling](queries, keys, config.epsilon) * mask
    return unscaled / unscaled.sum(dim=-1, keepdim=True)


def rotation(frequencies: Tensor, position: int, d_osc: int) -> Tensor:
    """Rot(position) [d_osc, d_osc]: the exponential of its generator.

    Args:
        frequencies: radians a position of the planes (0, 1), (2, 3), ...: [d_osc // 2].
        position: how often it has turned.
        d_osc: dimension; what is in no plane stays.
    """
    generator = torch.zeros(d_osc, d_osc, dtype=frequencies.dtype)
    for plane, frequency in enumerate(frequencies):
        generator[2 * plane + 1, 2 * plane] = frequency
        generator[2 * plane, 2 * plane + 1] = -frequency
    turned: Tensor = torch.linalg.matrix_exp(position * generator)
    return turned
