"""Anchors in int8 that stay inside the unit sphere after rounding."""

from __future__ import annotations

from math import sqrt

import torch.nn.functional as F
from torch import Tensor, nn

from entrain.deploy.quantization.layers import UNIT_STEPS, unit, values


def rounding_radius(d_osc: int) -> float:
    """Length to which anchors are drawn in, so that ``|r| <= 1`` holds after rounding.

    Rounding moves each of d_osc components by half a step at most, a vector by sqrt(d_osc) / 2.
    """
    return (UNIT_STEPS - 0.5 * sqrt(d_osc)) / UNIT_STEPS


class LearnedAnchors(nn.Module):
    """Anchors [1, heads, T, d_osc], kept on a sphere just inside the unit one in every pass.

    Learned from here on, however the network of floats made those of its first T positions.
    """

    def __init__(self, anchors: Tensor) -> None:
        super().__init__()
        self.anchors = nn.Parameter(anchors.detach().clone())
        self.quantizer = unit()

    def on_sphere(self) -> Tensor:
        """Before rounding."""
        radius = rounding_radius(self.anchors.shape[-1])
        return radius * F.normalize(self.anchors, dim=-1).unsqueeze(0)

    def forward(self) -> Tensor:
        """Rounded to steps of 1/127."""
        return values(self.quantizer(self.on_sphere()))


class FixedAnchors(nn.Module):
    """Learned anchors when learning is over: a constant, as the exported graph holds it."""

    def __init__(self, learned: LearnedAnchors) -> None:
        super().__init__()
        self.register_buffer("anchors", learned.on_sphere().detach())
        self.quantizer = learned.quantizer

    def forward(self) -> Tensor:
        """Rounded to steps of 1/127."""
        return values(self.quantizer(self.get_buffer("anchors")))


def fix_anchors(network: nn.Module) -> None:
    """Replace every LearnedAnchors in the network, before it is exported."""
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, LearnedAnchors):
                setattr(parent, name, FixedAnchors(child))
