"""Norms in quantized form, by the names of `BlockStyle`.

The affine half of every norm folds into the linear maps behind it. Of a batch norm nothing else is
left. What remains of a layer norm is a tensor with a quantizer of its own: its features have the
same spread, so that one step serves them all, and the maps behind it share it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from entrain.deploy.quantization.folding import Folded, affine_before, norm_as_affine
from entrain.deploy.quantization.layers import layer_normalised


@dataclass(frozen=True, eq=False)
class SplitNorm:
    """A trained norm, ``factor * computed(x) + offset``.

    Args:
        computed: what the device computes, from quantized tensors [B, T, C] to the same.
        factor: [C].
        offset: [C].
    """

    computed: nn.Module
    factor: Tensor
    offset: Tensor

    def before(self, linear: nn.Linear) -> Folded:
        """The linear map of what is computed that gives ``linear(norm(x))``."""
        return affine_before(self.factor, self.offset, linear)


def _batch(norm: nn.BatchNorm1d) -> SplitNorm:
    return SplitNorm(nn.Identity(), *norm_as_affine(norm))


def _layer(norm: nn.LayerNorm) -> SplitNorm:
    return SplitNorm(layer_normalised(norm), norm.weight.detach(), norm.bias.detach())


# Each norm of `models.networks.norm.NORMS`, trained.
NORMS: dict[str, Callable[..., SplitNorm]] = {"batch": _batch, "layer": _layer}
