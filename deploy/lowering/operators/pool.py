"""Windows that move over an image: their largest elements and their sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import static_shape
from entrain.deploy.lowering.operators.intervals import times


@dataclass(frozen=True)
class Window:
    """Extents of a window, how it moves, and how far over the edges of (N, C, Y, X).

    ``padding`` is (top, left, bottom, right).
    """

    kernel: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int] = (1, 1)

    def places(self, image: Shape) -> Shape:
        """(N, C, rows, columns) of where it stands."""
        spans = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)]
        around = [before + after for before, after in zip(*self._sides(), strict=True)]
        extents = zip(image[2:], around, spans, self.strides, strict=True)
        return (*image[:2], *((n + a - span) // s + 1 for n, a, span, s in extents))

    def counts(self, image: Shape) -> Array:
        """How many elements of the image it covers in each place, [rows, columns]."""
        ones = np.ones((1, 1, *image[2:]), np.int64)
        covered: Array = self.cut(ones, 0).sum(axis=(0, 1))
        return covered.reshape(self.places(image)[2:])

    def cut(self, image: Array, outside: int) -> Array:
        """What it covers in each place, [kernel elements, N, C, rows, columns]."""
        (top, left), (bottom, right) = self._sides()
        around = ((0, 0), (0, 0), (top, bottom), (left, right))
        padded = np.pad(image, around, constant_values=outside)
        *_, rows, columns = self.places(image.shape)
        (sy, sx), (dy, dx) = self.strides, self.dilation
        return np.stack(
            [
                padded[:, :, u * dy :: sy, v * dx :: sx][:, :, :rows, :columns]
                for u in range(self.kernel[0])
                for v in range(self.kernel[1])
            ]
        )

    def reduce(self, name: str, image: Any, dtype: str, how: str, outside: int) -> Any:
        """The te tensor of a reduction (``sum``, ``max``) over the window in each place."""
        from tvm import te, tirx

        shape, (top, left) = static_shape(image), self.padding[:2]
        (sy, sx), (dy, dx) = self.strides, self.dilation
        u = te.reduce_axis((0, self.kernel[0]), name=f"{name}_u")
        v = te.reduce_axis((0, self.kernel[1]), name=f"{name}_v")
        combine: Callable[..., Any] = getattr(te, how)

        def over(n: Any, c: Any, y: Any, x: Any) -> Any:
            row, column = y * sy + u * dy - top, x * sx + v * dx - left
            pixel = image(n, c, row, column).astype(dtype)
            if any(self.padding):
                inside = tirx.all(row >= 0, row < shape[2], column >= 0, column < shape[3])
                pixel = tirx.if_then_else(inside, pixel, tirx.const(outside, dtype))
            return combine(pixel, axis=[u, v])

        return te.compute(self.places(shape), over, name=name)

    def _sides(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return self.padding[:2], self.padding[2:]


@dataclass(frozen=True)
class PoolMax:
    """The largest element that each window covers; what lies outside the image never counts.

    Every window must cover an element of the image.
    """

    window: Window

    def result(self, image: Node) -> tuple[Shape, str]:
        """(N, C, rows, columns) of the operand's type."""
        return self.window.places(image.shape), image.dtype

    def interval(self, image: Node) -> Interval:
        """That of the operand."""
        return image.interval

    def reference(self, image: Array) -> Array:
        """The same in numpy."""
        lowest, _ = integer_range(str(image.dtype))
        largest: Array = self.window.cut(image, lowest).max(axis=0)
        return largest

    def compute(self, name: str, image: Any) -> Any:
        """A reduction over the window."""
        dtype = str(image.dtype)
        return self.window.reduce(name, image, dtype, "max", integer_range(dtype)[0])


@dataclass(frozen=True)
class PoolSum:
    """The sum of each window in int32; outside the image lie zeros."""

    window: Window

    def result(self, image: Node) -> tuple[Shape, str]:
        """(N, C, rows, columns) in int32."""
        return self.window.places(image.shape), "int32"

    def interval(self, image: Node) -> Interval:
        """As often the operand's as the window has elements."""
        return times(prod(self.window.kernel), image.interval)

    def reference(self, image: Array) -> Array:
        """The same in numpy."""
        total: Array = self.window.cut(image.astype(np.int32), 0).sum(axis=0, dtype=np.int32)
        return total

    def compute(self, name: str, image: Any) -> Any:
        """A reduction over the window."""
        return self.window.reduce(name, image, "int32", "sum", 0)
