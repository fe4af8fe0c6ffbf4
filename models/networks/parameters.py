"""The size of a network."""

from __future__ import annotations

from torch import nn


def count_parameters(network: nn.Module) -> int:
    """Number of learned values, norms included."""
    return sum(parameter.numel() for parameter in network.parameters())
