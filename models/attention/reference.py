"""The oscillator's equations as printed, one line each: what the fast forms are held to.

Slow, and with every weight written out; in float64 it is exact to about 1e-15.
"""

from __future__ import annotations

import torch
from torch import Tensor

from entrain.models.attention.config import AttentionConfig


def coupling_weights(queries: Tensor, keys: Tensor, config: AttentionConfig) -> Tensor:
    """w_ij of queries and keys [..., T, d_head]: [..., T, T].

    softplus(s_ij), relu(s_ij) + epsilon, or relu(q_i).relu(k_j) / sqrt(d_head) + epsilon, where
    s_ij = q_i.k_j / sqrt(d_head).
    """
    root = torch.tensor(queries.shape[-1], dtype=queries.dtype).sqrt()
    scores = torch.einsum("...id,...jd->...ij", queries, keys) / root
    positive = torch.einsum("...id,...jd->...ij", queries.clamp(min=0), keys.clamp(min=0)) / root
    forms = {
        "softplus": torch.log1p(torch.exp(-scores.abs())) + scores.clamp(min=0),
        "relu": scores.clamp(min=0) + config.epsilon,
        "separable": positive + config.epsilon,
    }
    return forms[str(config.coupling)]


def oscillator_weights(
    queries: Tensor, keys: Tensor, anchors: Tensor, mask: Tensor, config: AttentionConfig
) -> Tensor:
    """The attention weights a_ij, each row summing to 1.

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
