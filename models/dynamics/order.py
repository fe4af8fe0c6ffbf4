"""Order parameters: how far phases agree, 1 when all are equal and 0 when they cancel out."""

from __future__ import annotations

import torch
from torch import Tensor


def global_order(phases: Tensor, real: Tensor | None = None) -> Tensor:
    """R = |mean over all tokens of e^(i theta)|, for every coordinate.

    Args:
        phases: theta [..., T, k].
        real: [..., T], true for real tokens; None if all are.

    Returns:
        [..., k], in 0..1.
    """
    weights = torch.ones(phases.shape[:-1], dtype=phases.dtype, device=phases.device)
    if real is not None:
        weights = weights * real
    total = weights.sum(dim=-1).clamp(min=1)
    cosine = torch.einsum("...t,...tk->...k", weights, phases.cos())
    sine = torch.einsum("...t,...tk->...k", weights, phases.sin())
    return torch.hypot(cosine, sine) / total.unsqueeze(-1)


def local_order(phases: Tensor, window: int, *, causal: bool = True) -> Tensor:
    """R of every token's neighbourhood: all tokens of the window weigh the same.

    Args:
        phases: theta [..., T, k].
        window: tokens, itself included: those up to it when causal, else as many on both sides
            (an odd number). At the ends there are fewer.
        causal: whether a token's neighbours are those before it only.

    Returns:
        [..., T, k], in 0..1.
    """
    places = torch.arange(phases.shape[-2], device=phases.device)
    behind = places[:, None] - places[None, :]
    near = (behind >= 0) & (behind < window) if causal else behind.abs() <= window // 2
    return weighted_order(phases, near.to(phases.dtype))


def weighted_order(phases: Tensor, weights: Tensor) -> Tensor:
    """R of what each token attends to, |sum_u A_tu e^(i theta_u)| / sum_u A_tu.

    Args:
        phases: theta [..., T, k].
        weights: A [..., T, T], not negative; rows need not sum to 1.

    Returns:
        [..., T, k], in 0..1; 0 for a token that attends to none.
    """
    total = weights.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
    return torch.hypot(weights @ phases.cos(), weights @ phases.sin()) / total
