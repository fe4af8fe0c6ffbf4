"""Who attends to whom: the weights of any mechanism, read off what it does with known values."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention.projections import ProjectedAttention, split_heads


class _Places(nn.Module):
    """In place of a value map: the value of token j is the unit vector e_j, in every head."""

    def __init__(self, heads: int, d_head: int) -> None:
        super().__init__()
        self.heads, self.d_head = heads, d_head

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, d_model] to values of the same shape."""
        places = torch.eye(x.shape[1], self.d_head, dtype=x.dtype, device=x.device)
        return places.repeat(1, self.heads).expand(len(x), -1, -1)


@torch.no_grad()
def attention_weights(
    attention: ProjectedAttention,
    x: Tensor,
    *,
    padding: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    """The weights a_ij with which token i reads the value of token j.

    No mechanism here weighs values by what they are, so its read-out of unit vectors is its row of
    weights; forms that never write the weights down are no exception.

    Args:
        attention: it is left as it is.
        x: tokens [B, T, d_model], as the attention reads them.
        padding: as in `AttentionMechanism.forward`.
        causal: likewise.

    Returns:
        [B, heads, T, T]; every row of a token that sees any sums to 1.

    Raises:
        UsageError: a head is narrower than the number of tokens.
    """
    length = x.shape[1]
    if length > attention.d_head:
        raise UsageError(
            f"{length} tokens, and a head of width {attention.d_head} can tell as many apart only",
            remedy="Look at a shorter sequence, or at a network of wider heads.",
        )
    probe = copy.deepcopy(attention)
    probe.register_module("value", _Places(attention.heads, attention.d_head))
    probe.register_module("output", nn.Identity())
    read: Tensor = probe(x, padding=padding, causal=causal)
    return split_heads(read, attention.heads)[..., :length]
