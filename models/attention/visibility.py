"""Which tokens a token may see, and sums over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

# Causal sums are taken pair by pair within this many tokens, and as running sums beyond: much
# faster than a running sum of every token, and still linear in the length.
CHUNK = 64


class Visible(ABC):
    """Who sees whom, as an attention mechanism asks for it."""

    @property
    @abstractmethod
    def first(self) -> int:
        """Position of the first of the tokens at hand."""

    @abstractmethod
    def mask(self, length: int, like: Tensor) -> Tensor:
        """Ones where i sees j: [B or 1, 1, T or 1, T], in the type and place of `like`."""

    @abstractmethod
    def total(self, terms: Tensor) -> Tensor:
        """Sum over the tokens each token sees: [B or 1, H, T, C] to [B or 1, H, T or 1, C]."""

    @abstractmethod
    def weigh(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """sum_j (q_i.k_j) v_j over the tokens j that i sees, linear in the number of tokens.

        Args:
            queries: [B or 1, H, T, F].
            keys: [B or 1, H, T, F].
            values: [B or 1, H, T, C].

        Returns:
            [B or 1, H, T, C].
        """


@dataclass(frozen=True)
class Visibility(Visible):
    """Token i sees token j if j is real (not padding) and, when causal, j <= i.

    Sums that are the same for every i keep a token axis of size 1, so that what is not causal
    costs one sum and what is causal costs one running sum.

    Args:
        real: [B, T], true for real tokens; None if all are.
        causal: whether a token sees only itself and those before it.
    """

    real: Tensor | None
    causal: bool

    @property
    def first(self) -> int:
        """Sequences are seen from their beginning."""
        return 0

    def mask(self, length: int, like: Tensor) -> Tensor:
        """See `Visible`."""
        visible = torch.ones(1, 1, 1, length, dtype=like.dtype, device=like.device)
        if self.real is not None:
            visible = self.real.to(like.dtype)[:, None, None, :]
        if self.causal:
            visible = visible * torch.ones(length, length, dtype=like.dtype).tril().to(like.device)
        return visible

    def total(self, terms: Tensor) -> Tensor:
        """See `Visible`."""
        terms = self._without_padding(terms)
        return terms.cumsum(dim=2) if self.causal else terms.sum(dim=2, keepdim=True)

    def weigh(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """See `Visible`."""
        keys = self._without_padding(keys)
        if self.causal:
            return _weigh_causally(queries, keys, values)
        return queries @ (keys.transpose(-1, -2) @ values)

    def _without_padding(self, terms: Tensor) -> Tensor:
        if self.real is None:
            return terms
        return terms * self.real.to(terms.dtype)[:, None, :, None]


def _weigh_causally(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """`Visible.weigh` over the tokens up to i."""
    length = queries.shape[2]
    size = min(CHUNK, length)
    spare = -length % size
    q, k, v = (
        F.pad(terms, (0, 0, 0, spare)).reshape(*terms.shape[:2], -1, size, terms.shape[3])
        for terms in (queries, keys, values)
    )
    within = (q @ k.transpose(-1, -2)).tril() @ v
    # What all earlier chunks hold: [B, H, chunks, F, C].
    earlier = (k.transpose(-1, -2) @ v).cumsum(dim=2)[:, :, :-1]
    before = q @ F.pad(earlier, (0, 0, 0, 0, 1, 0))
    weighed: Tensor = (within + before).flatten(2, 3)[:, :, :length]
    return weighed
