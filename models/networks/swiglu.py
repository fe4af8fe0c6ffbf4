"""The gated feed-forward layer of Shazeer 2020 (arXiv 2002.05202)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class SwiGLU(nn.Module):
    """contract(silu(gate(x)) expand(x)).

    Args:
        width: of what goes in and comes out.
        d_feed: of the inner layer.
        bias: whether the maps into the inner layer have one.
    """

    def __init__(self, width: int, d_feed: int, *, bias: bool = False) -> None:
        super().__init__()
        self.gate = nn.Linear(width, d_feed, bias=bias)
        self.expand = nn.Linear(width, d_feed, bias=bias)
        self.contract = nn.Linear(d_feed, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Transform x [..., width]."""
        fed: Tensor = self.contract(F.silu(self.gate(x)) * self.expand(x))
        return fed
