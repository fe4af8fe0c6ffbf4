"""Anchors: the fixed oscillators, one a position and head, that pull at the free ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import sqrt, tau

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from entrain.deploy.errors import UsageError


class Anchors(nn.Module, ABC):
    """Unit vectors r_j; both kinds are built from heads, max_length and d_osc."""

    @abstractmethod
    def forward(self, length: int, first: int = 0) -> Tensor:
        """The anchors of positions first .. first + length - 1: [heads, length, d_osc].

        Raises:
            UsageError: if there is no anchor for one of them.
        """


class LearnedAnchors(Anchors):
    """One learned vector a position, up to `max_length`; only its direction counts."""

    def __init__(self, heads: int, max_length: int, d_osc: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(_random_directions(heads, max_length, d_osc))

    def forward(self, length: int, first: int = 0) -> Tensor:
        """See `Anchors`."""
        end, available = first + length, self.vectors.shape[1]
        if end > available:
            raise UsageError(
                f"{end} tokens, but anchors for {available} positions only",
                remedy="Build it with a larger max_length, or take anchors by rotation "
                "(-rotation behind the mechanism's name), which have no end.",
            )
        unit: Tensor = F.normalize(self.vectors[:, first:end], dim=-1)
        return unit


class RotationAnchors(Anchors):
    """r_j = Rot(j) r_0: a learned vector that turns at learned speeds, at any position.

    Rot(j) turns plane c, the components 2 c and 2 c + 1, by j omega_c; in an odd dimension the
    last component stays. The speeds omega [radians a position] begin as a geometric series over
    planes and heads, from one turn in `max_length` positions up towards one radian. All planes
    begin with an equal share of r_0, so that no draw makes all anchors alike.
    """

    def __init__(self, heads: int, max_length: int, d_osc: int) -> None:
        super().__init__()
        planes = d_osc // 2
        slowest = min(tau / max_length, 1.0)
        share = 1 - torch.arange(heads * planes) / (heads * planes)
        still = torch.full((heads, d_osc % 2), sqrt(0.5))
        origin = torch.cat((_random_directions(heads, planes, 2).flatten(1), still), dim=1)
        self.origin = nn.Parameter(F.normalize(origin, dim=-1))
        self.frequencies = nn.Parameter((slowest**share).view(planes, heads).t().contiguous())

    def forward(self, length: int, first: int = 0) -> Tensor:
        """See `Anchors`; every position has one."""
        origin = F.normalize(self.origin, dim=-1).unsqueeze(1)
        positions = torch.arange(first, first + length, device=origin.device).to(origin.dtype)
        angles = positions[:, None] * self.frequencies[:, None, :]
        cosines, sines = angles.cos(), angles.sin()
        turning = 2 * self.frequencies.shape[1]
        x, y = origin[..., 0:turning:2], origin[..., 1:turning:2]
        turned = torch.stack((cosines * x - sines * y, sines * x + cosines * y), dim=-1).flatten(2)
        still = origin[..., turning:].expand(-1, length, -1)
        return torch.cat((turned, still), dim=-1)


def _random_directions(*shape: int) -> Tensor:
    """Uniform on the unit sphere."""
    return F.normalize(torch.randn(*shape), dim=-1)


ANCHOR_KINDS: dict[str, Callable[[int, int, int], Anchors]] = {
    "learned": LearnedAnchors,
    "rotation": RotationAnchors,
}
