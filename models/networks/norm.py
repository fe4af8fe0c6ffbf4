"""Batch normalisation of token features."""

from __future__ import annotations

from torch import Tensor, nn


class FeatureNorm(nn.BatchNorm1d):
    """Batch norm over all tokens of all sequences: [B, T, C] to [B, T, C].

    At inference it is one multiplication and one addition a feature, and folds into the linear
    map beside it; that is why the networks here use it in place of layer norm.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x [B, T, C] over B and T."""
        return super().forward(x.flatten(0, 1)).view_as(x)
