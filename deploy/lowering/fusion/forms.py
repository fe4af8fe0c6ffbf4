"""How tokens lie in the tensors that an attention reads and writes: heads, tokens, channels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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

    def read(self, tensor: Array) -> Array:
        """[H, T, D] out of a tensor of any shape."""
        elements: Array = tensor.reshape(-1)[self.places]
        return elements


def forms(shape: Shape) -> Iterator[Form]:
    """Every usual way in which a tensor of this shape holds all channels of all tokens once.

    Token by token with its heads side by side, and head by head; channels are neighbours always.
    """
    extents = [extent for extent in shape if extent > 1] or [1]
    if len(extents) == 1:
        extents = [1, *extents]
    if len(extents) == 2:
        tokens, width = extents
        yield from (_merged(tokens, width, heads) for heads in _divisors(width))
    elif len(extents) == 3:
        first, second, channels = extents
        yield _apart(first, second, channels)
        yield Form((second, first, channels), (channels, second * channels, 1))


def packed_forms(shape: Shape) -> Iterator[tuple[Form, Form, Form]]:
    """Queries, keys and values side by side in one tensor [T, 3 * H * D]."""
    extents = [extent for extent in shape if extent > 1]
    if len(extents) != 2 or extents[1] % 3:
        return
    tokens, width = extents[0], extents[1] // 3
    for heads in _divisors(width):
        channels = width // heads
        query, key, value = (
            Form((heads, tokens, channels), (channels, 3 * width, 1), part * width)
            for part in range(3)
        )
        yield query, key, value


def _merged(tokens: int, width: int, heads: int) -> Form:
    channels = width // heads
    return Form((heads, tokens, channels), (channels, width, 1))


def _apart(heads: int, tokens: int, channels: int) -> Form:
    return Form((heads, tokens, channels), (tokens * channels, channels, 1))


def _divisors(width: int) -> list[int]:
    return [heads for heads in range(1, width + 1) if width % heads == 0]
