"""Integer convolution over two spatial axes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import static_shape
from entrain.deploy.lowering.operators.intervals import sum_of_products


@dataclass(frozen=True)
class Convolution:
    """``c[n, o, y, x] = sum a[n, i, y*sy + u*dy - top, x*sx + v*dx - left] * w[o, i, u, v]``.

    int32 sums; outside the image a is 0, which is why operands come with the zero point taken off.
    ``padding`` is (top, left, bottom, right); ``groups`` splits the channels (depthwise: groups =
    channels).
    """

    strides: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int]
    groups: int

    def result(self, a: Node, w: Node) -> tuple[Shape, str]:
        """(N, O, Y, X)."""
        top, left, bottom, right = self.padding
        tall = a.shape[2] + top + bottom - self.dilation[0] * (w.shape[2] - 1) - 1
        wide = a.shape[3] + left + right - self.dilation[1] * (w.shape[3] - 1) - 1
        rows, columns = tall // self.strides[0] + 1, wide // self.strides[1] + 1
        return (a.shape[0], w.shape[0], rows, columns), "int32"

    def sees_the_image(self, a: Node, w: Node) -> bool:
        """Whether anything but padding is ever read, along both axes."""
        shape, _ = self.result(a, w)
        axes = zip(
            *(shape[2:], self.strides, w.shape[2:], self.dilation),
            *(self.padding[:2], a.shape[2:]),
            strict=True,
        )
        return all(
            any(0 <= y * s + u * d - before < extent for y in range(count) for u in range(taps))
            for count, s, taps, d, before, extent in axes
        )

    def interval(self, a: Node, w: Node) -> Interval:
        """As often the extreme products as the kernel has elements."""
        return sum_of_products(a, w, prod(w.shape[1:]))

    def macs(self, a: Node, w: Node) -> int:
        """Multiply-adds, padding included."""
        shape, _ = self.result(a, w)
        return prod(shape) * prod(w.shape[1:])

    def reference(self, a: Array, w: Array) -> Array:
        """Exact: one matrix product a kernel position, in float64."""
        top, left, bottom, right = self.padding
        padded = np.pad(a.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
        (sy, sx), (dy, dx) = self.strides, self.dilation
        batch, group_in = a.shape[0], w.shape[1]
        rows = (padded.shape[2] - dy * (w.shape[2] - 1) - 1) // sy + 1
        columns = (padded.shape[3] - dx * (w.shape[3] - 1) - 1) // sx + 1
        total = np.zeros((batch, self.groups, w.shape[0] // self.groups, rows * columns))
        kernel = w.astype(np.float64).reshape(self.groups, -1, group_in, *w.shape[2:])
        for u in range(w.shape[2]):
            for v in range(w.shape[3]):
                part = padded[:, :, u * dy :, v * dx :][:, :, ::sy, ::sx][:, :, :rows, :columns]
                flat = part.reshape(batch, self.groups, group_in, rows * columns)
                total += kernel[None, :, :, :, u, v] @ flat
        return total.astype(np.int32).reshape(batch, w.shape[0], rows, columns)

    def compute(self, name: str, a: Any, w: Any) -> Any:
        """A reduction over input channels and kernel positions."""
        from tvm import te, tirx

        (sy, sx), (dy, dx), (top, left, bottom, right) = self.strides, self.dilation, self.padding
        shape_a, shape_w = static_shape(a), static_shape(w)
        rows = (shape_a[2] + top + bottom - dy * (shape_w[2] - 1) - 1) // sy + 1
        columns = (shape_a[3] + left + right - dx * (shape_w[3] - 1) - 1) // sx + 1
        i = te.reduce_axis((0, shape_w[1]), name=f"{name}_i")
        u = te.reduce_axis((0, shape_w[2]), name=f"{name}_u")
        v = te.reduce_axis((0, shape_w[3]), name=f"{name}_v")
        per_group = shape_w[0] // self.groups

        def product(n: Any, o: Any, y: Any, x: Any) -> Any:
            channel = i if self.groups == 1 else (o // per_group) * shape_w[1] + i
            row, column = y * sy + u * dy - top, x * sx + v * dx - left
            pixel = a(n, channel, row, column).astype("int32")
            if any(self.padding):
                inside = tirx.all(row >= 0, row < shape_a[2], column >= 0, column < shape_a[3])
                pixel = tirx.if_then_else(inside, pixel, tirx.const(0, "int32"))
            return te.sum(pixel * w(o, i, u, v).astype("int32"), axis=[i, u, v])

        return te.compute((shape_a[0], shape_w[0], rows, columns), product, name=name)
