"""How tokens lie in the tensors that an attention reads and writes: heads, tokens, channels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from entrain.deploy.lowering.graph import Array, Shape


@dataclass(frozen=True)
class Form:
    """Element (head, token, channel) lies at ``offset + head * a + token * b + channel * c``.

    ``strides`` is (a, b, c); ``shape`` is (heads, tokens, channels).
    """

    shape: tuple[int, int, int]
    strides: tuple[int, int, int]
    offset: int = 0

    @property
    def places(self) -> Array:
        """The address of each element, [H, T, D]."""
        axes = (np.arange(e) * s for e, s in zip(self.shape, self.strides, strict=True))
        a, b, c = axes
        places: Array = self.offset + a[:, None, None] + b[:, None] + c
        return places

    @property
    def first(self) -> Array:
        """The addresses of the first head's first token, [D]."""
        addresses: Array = self.offset + np.arange(self.shape[2]) * self.strides[2]
        return addresses

    def shared(self, heads: int) -> Form:
        """The same for each of so many heads, if it is of one."""
        _, tokens, channels = self.shape
        if self.shape[0] != 1:
            return self
        return Form((heads, tokens, channels), (0, *self.strides[1:]), self.offset)

    def read(self, tensor: Array) -> Array:
        """[H, T, D] out of a tensor of any shape."""
        elements: Array = tensor.reshape(-1)[self.places]
        return elements


def forms(shape: Shape) -> Iterator[Form]:
    """Every usual way in which a tensor of this shape holds all channels of all tokens once.

    Token by token with its heads side by side, and head by head; channels are neighbours always.
    """
    extents = _extents(shape)
    *heads, tokens, channels = extents
    if heads:
        yield Form((prod(heads), tokens, channels), (tokens * channels, channels, 1))
    tokens, width = extents[0], prod(extents[1:])
    for count in _divisors(width):
        yield Form((count, tokens, width // count), (width // count, width, 1))


def packed_forms(shape: Shape, parts: int) -> Iterator[tuple[Form, ...]]:
    """So many of queries, keys and values in one tensor, in the order in which they lie there.

    In each token's row, one behind the other or head by head; or one whole behind the other.
    """
    extents = _extents(shape)
    tokens, width = extents[0], prod(extents[1:])
    if width % parts == 0:
        for heads in _divisors(width // parts):
            channels = width // parts // heads
            whole = (heads, tokens, channels)
            yield tuple(
                Form(whole, (channels, width, 1), part * heads * channels) for part in range(parts)
            )
            if heads > 1:
                yield tuple(
                    Form(whole, (parts * channels, width, 1), part * channels)
                    for part in range(parts)
                )
    if extents[0] == parts and len(extents) > 2:
        size = prod(extents[1:])
        for form in forms(tuple(extents[1:])):
            yield tuple(Form(form.shape, form.strides, part * size) for part in range(parts))


def _extents(shape: Shape) -> list[int]:
    """Extents of axes that have any; two at least."""
    extents = [extent for extent in shape if extent > 1]
    return [1] * (2 - len(extents)) + extents


def _divisors(width: int) -> list[int]:
    return [heads for heads in range(1, width + 1) if width % heads == 0]
