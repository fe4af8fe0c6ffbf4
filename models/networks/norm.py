"""Normalisation of token features, by name."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


class FeatureNorm(nn.BatchNorm1d):
    """Batch norm over all tokens of all sequences: [B, T, C] to [B, T, C].

    At inference it is one multiplication and one addition a feature, and folds into the linear
    map beside it. A layer norm costs the device a pass over the tokens and a root for each.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x [B, T, C] over B and T."""
        return super().forward(x.flatten(0, 1)).view_as(x)


# By the number of features.
NORMS: dict[str, Callable[[int], nn.Module]] = {"batch": FeatureNorm, "layer": nn.LayerNorm}
