"""What is added to tokens to tell their places apart, by name."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

# Standard deviation of learned positions at the start.
POSITION_DEVIATION = 0.02


class NoPositions(nn.Module):
    """Tokens stay as they are: what knows of places is the attention or nothing."""

    def __init__(self, _length: int, _d_model: int) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """Leave x [B, T, d_model] as it is."""
        return x


class LearnedPositions(nn.Module):
    """One learned vector a place."""

    def __init__(self, length: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(POSITION_DEVIATION * torch.randn(length, d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Add the first T vectors to x [B, T, d_model]."""
        return x + self.table[: x.shape[1]]


class SinusoidalPositions(nn.Module):
    """Sines and cosines of the place at wavelengths from 2 pi to 10,000 times that."""

    def __init__(self, length: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Add the first T vectors to x [B, T, d_model]."""
        return x + self.get_buffer("table")[: x.shape[1]]


def sinusoids(length: int, d_model: int) -> Tensor:
    """Vaswani et al. 2017, section 3.5: [length, d_model], sine and cosine in turns."""
    places = torch.arange(length, dtype=torch.float64)[:, None]
    rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))
    table = torch.stack([(places * rates).sin(), (places * rates).cos()], dim=-1)
    return table.flatten(1)[:, :d_model].float()


# By the longest sequence and the width of a token.
POSITIONS: dict[str, Callable[[int, int], nn.Module]] = {
    "none": NoPositions,
    "learned": LearnedPositions,
    "sinusoidal": SinusoidalPositions,
}
