"""Images with channels last as the C structures that kernels of convolutions and pools read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from entrain.deploy.lowering.graph import BYTES, Array
from entrain.deploy.lowering.kernels.c_source import structure
from entrain.deploy.lowering.kernels.rescaled_sum import RescaledSum
from entrain.deploy.lowering.views import View, strides_of


@dataclass(frozen=True)
class Image:
    """``struct entrain_image``: the byte of (row, column, channel) by strides."""

    rows: int
    columns: int
    channels: int
    row_bytes: int
    pixel_bytes: int
    channel_bytes: int = 1

    @property
    def pitch(self) -> int | None:
        """Bytes from each pixel to the next, row after row; None if they differ."""
        if self.columns == 1:
            return self.row_bytes
        is_even = self.rows == 1 or self.row_bytes == self.columns * self.pixel_bytes
        return self.pixel_bytes if is_even else None

    @property
    def places(self) -> Array:
        """The byte of each row, column and channel."""
        rows, columns, channels = np.ogrid[: self.rows, : self.columns, : self.channels]
        places: Array = (
            rows * self.row_bytes + columns * self.pixel_bytes + channels * self.channel_bytes
        )
        return places

    @property
    def upright(self) -> Image:
        """One row of pixels as a column."""
        return replace(
            self,
            rows=self.columns,
            columns=1,
            row_bytes=self.pixel_bytes,
            pixel_bytes=self.channels,
        )

    def c_text(self) -> str:
        """As an initialiser."""
        return structure(vars(self))


def image_of(view: View) -> Image | None:
    """A view (1, channels, rows, columns) of bytes as an image; None if there are several."""
    batch, channels, rows, columns = view.shape
    if batch != 1 or view.value.dtype not in BYTES:
        return None
    return _image(channels, rows, columns, view.strides[1:])


def result_image(found: RescaledSum) -> Image | None:
    """Where a sum (1, channels, rows, columns) goes; None if that is irregular."""
    batch, channels, rows, columns = found.places.shape
    strides = strides_of(found.places)
    if batch != 1 or strides is None or found.places.flat[0] != 0:
        return None
    return _image(channels, rows, columns, strides[1:])


def _image(channels: int, rows: int, columns: int, strides: tuple[int, ...]) -> Image:
    """An axis of extent 1 gets the stride that makes the image dense."""
    channel, row, column = strides
    channel = channel if channels > 1 else 1
    column = column if columns > 1 else channels
    row = row if rows > 1 else columns * column
    return Image(rows, columns, channels, row, column, channel)


@dataclass(frozen=True)
class Window:
    """``struct entrain_window``: what an output pixel sees."""

    rows: int
    columns: int
    row_stride: int
    column_stride: int
    row_dilation: int
    column_dilation: int
    top: int
    left: int

    @property
    def upright(self) -> Window:
        """One row as a column."""
        return Window(
            *(self.columns, self.rows),
            *(self.column_stride, self.row_stride),
            *(self.column_dilation, self.row_dilation),
            *(self.left, self.top),
        )

    def seen_rows(self, outputs: int) -> int:
        """Input rows that so many output rows see."""
        return (outputs - 1) * self.row_stride + (self.rows - 1) * self.row_dilation + 1

    def seen_columns(self, outputs: int) -> int:
        """Input columns that so many output columns see."""
        return (outputs - 1) * self.column_stride + (self.columns - 1) * self.column_dilation + 1

    def first_seen(self, rows: int, outputs: int) -> Array:
        """For each input row the first output row that sees it, or one behind."""
        reach = (self.rows - 1) * self.row_dilation - self.top
        first = -((reach - np.arange(rows)) // self.row_stride)
        return np.clip(first, 0, outputs - 1)

    def last_seen(self, rows: int, outputs: int) -> Array:
        """For each input row the last output row that sees it, or one behind that."""
        last = (np.arange(rows) + self.top) // self.row_stride
        return np.minimum(last, outputs - 1)

    def band(self, outputs: int, row_bytes: int, most: int) -> int:
        """Output rows at a time, so that what they see fits ``most`` bytes; as even as can be."""
        fitting = [n for n in range(1, outputs + 1) if self.seen_rows(n) * row_bytes <= most]
        return ceil(outputs / ceil(outputs / max(fitting, default=1)))

    def c_text(self) -> str:
        """As an initialiser."""
        return structure(vars(self))


def window_of(
    kernel: tuple[int, ...],
    strides: tuple[int, int],
    dilation: tuple[int, int],
    before: tuple[int, int],
) -> Window:
    """A window by pairs of rows and columns; ``before`` is the padding above and on the left."""
    rows, columns = kernel
    return Window(rows, columns, *strides, *dilation, *before)
