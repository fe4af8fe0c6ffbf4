"""Positions as constants of the quantized network."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def position_table(positions: nn.Module, length: int, width: int) -> Tensor:
    """What trained positions of any kind add to tokens: [length, width].

    The lowering adds it to the bias of the map that makes the tokens: one row of integers a place.
    """
    nothing = torch.zeros(1, length, width)
    table: Tensor = positions(nothing).detach()[0].clone()
    return table
