"""Numpy's broadcasting rule for te tensors."""

from __future__ import annotations

from typing import Any

from entrain.deploy.lowering.graph import Shape


def element(tensor: Any, shape: Shape, indices: tuple[Any, ...]) -> Any:
    """The element of ``tensor`` (of static ``shape``) at indices of a result of higher rank."""
    aligned = indices[len(indices) - len(shape) :]
    return tensor(*(0 if extent == 1 else i for extent, i in zip(shape, aligned, strict=True)))


def static_shape(tensor: Any) -> Shape:
    """The te tensor's shape as plain integers."""
    return tuple(int(extent) for extent in tensor.shape)
