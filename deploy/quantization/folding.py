"""Affine maps folded into the linear maps beside them: the same function, one layer less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Folded:
    """A linear map or convolution: ``weight`` (output channels first) and ``bias`` [out]."""

    weight: Tensor
    bias: Tensor


# A trained linear map with what stands before it: a norm, or what is left of one.
Fold = Callable[[nn.Linear], Folded]


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


def norm_before(norm: nn.BatchNorm1d, linear: nn.Linear) -> Folded:
    """``linear(norm(x))``."""
    return affine_before(*norm_as_affine(norm), linear)


def affine_before(factor: Tensor, offset: Tensor, linear: nn.Linear) -> Folded:
    """``linear(factor * x + offset)`` for a factor and an offset [in]."""
    weight = linear.weight.detach()
    return Folded(weight * factor, linear.bias.detach() + weight @ offset)


def unfolded(linear: nn.Linear) -> Folded:
    """A linear map as it is."""
    return Folded(linear.weight.detach(), linear.bias.detach())
