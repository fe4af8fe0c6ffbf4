"""Batch norms folded into the linear maps beside them: the same function, one layer less."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Folded:
    """A linear map or convolution: ``weight`` (output channels first) and ``bias`` [out]."""

    weight: Tensor
    bias: Tensor


def norm_as_affine(norm: nn.BatchNorm1d | nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """A trained batch norm as ``factor * x + offset``, both [channels]."""
    if norm.running_mean is None or norm.running_var is None:
        raise ValueError("this batch norm keeps no running statistics")
    factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return factor.detach(), (norm.bias - norm.running_mean * factor).detach()


def norm_after(weight: Tensor, norm: nn.BatchNorm1d | nn.BatchNorm2d) -> Folded:
    """``norm(weight * x)`` for a map or convolution without bias."""
    factor, offset = norm_as_affine(norm)
    return Folded(weight.detach() * factor.view(-1, *([1] * (weight.ndim - 1))), offset)


def norm_before(norm: nn.Module, linear: nn.Linear) -> Folded:
    """``linear(norm(x))`` for a batch norm.

    Raises:
        TypeError: it is another norm, which does not fold.
    """
    if not isinstance(norm, nn.BatchNorm1d):
        raise TypeError(f"a {type(norm).__name__} does not fold into a linear map")
    factor, offset = norm_as_affine(norm)
    weight = linear.weight.detach()
    return Folded(weight * factor, linear.bias.detach() + weight @ offset)


def unfolded(linear: nn.Linear) -> Folded:
    """A linear map as it is."""
    return Folded(linear.weight.detach(), linear.bias.detach())
