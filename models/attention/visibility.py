"""Which tokens a token may see, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Visibility:
    """Token i sees token j if j is real (not padding) and, when causal, j <= i.

    Sums that are the same for every i keep a token axis of size 1, so that what is not causal
    costs one sum and what is causal costs one running sum.

    Args:
        real: [B, T], true for real tokens; None if all are.
        causal: whether a token sees only itself and those before it.
    """

    real: Tensor | None
    causal: bool

    def mask(self, length: int, like: Tensor) -> Tensor:
        """Ones where i sees j: [B or 1, 1, T or 1, T], in the type and place of `like`."""
        visible = torch.ones(1, 1, 1, length, dtype=like.dtype, device=like.device)
        if self.real is not None:
            visible = self.real.to(like.dtype)[:, None, None, :]
        if self.causal:
            visible = visible * torch.ones(length, length, dtype=like.dtype).tril().to(like.device)
        return visible

    def total(self, terms: Tensor) -> Tensor:
        """Sum over the tokens each token sees: [B or 1, H, T, C] to [B or 1, H, T or 1, C]."""
        terms = self._without_padding(terms)
        return terms.cumsum(dim=2) if self.causal else terms.sum(dim=2, keepdim=True)

    def total_outer(self, left: Tensor, right: Tensor) -> Tensor:
        """Sum of outer products left_j right_j^T over the tokens each token sees.

        Args:
            left: [B or 1, H, T, L].
            right: [B or 1, H, T, R].

        Returns:
            [B, H, T or 1, L, R].
        """
        left = self._without_padding(left)
        if self.causal:
            return (left.unsqueeze(-1) * right.unsqueeze(-2)).cumsum(dim=2)
        return (left.transpose(-1, -2) @ right).unsqueeze(2)

    def _without_padding(self, terms: Tensor) -> Tensor:
        if self.real is None:
            return terms
        return terms * self.real.to(terms.dtype)[:, None, :, None]


def contract(vectors: Tensor, matrices: Tensor) -> Tensor:
    """Each token's row vector times its matrix, or times the one matrix all tokens share.

    Args:
        vectors: [B, H, T, L].
        matrices: [B, H, T or 1, L, R].

    Returns:
        [B, H, T, R].
    """
    if matrices.shape[2] == 1:
        return vectors @ matrices.squeeze(2)
    return (vectors.unsqueeze(-2) @ matrices).squeeze(-2)
