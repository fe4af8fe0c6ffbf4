"""Images with channels last as the C structures that kernels of convolutions and pools read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.kernels.rescaled_sum import RescaledSum
from entrain.deploy.lowering.views import View, strides_of

PLANE_BYTES = 1024  # of the arena, for the rows that a band of output rows sees; more if need be


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
    def is_dense(self) -> bool:
        """Whether pixels lie one behind the other."""
        return self.row_bytes == self.columns * self.pixel_bytes

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


def source_of(view: View) -> str:
    """C of where a view begins."""
    offset = f" + {view.offset}" if view.offset else ""
    return f"{view.value.name}_in{offset}"


def image_of(view: View) -> Image | None:
    """A view (1, channels, rows, columns) of bytes as an image; None if there are several."""
    batch, channels, rows, columns = view.shape
    if batch != 1 or view.value.dtype not in ("int8", "uint8"):
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

    def band(self, outputs: int, row_bytes: int) -> int:
        """Output rows at a time, so that what they see fits ``PLANE_BYTES``; as even as can be."""
        fitting = [n for n in range(1, outputs + 1) if self.seen_rows(n) * row_bytes <= PLANE_BYTES]
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


def rescale_text(found: RescaledSum, shift: int) -> str:
    """``struct entrain_rescale``."""
    to = found.requantize
    return structure(
        {
            "shift": shift,
            "zero_point": to.zero_point,
            "low": to.low,
            "high": to.high,
            "is_unsigned": to.dtype == "uint8",
            "for_each_channel": np.unique(found.multipliers).size > 1,
        }
    )


def structure(fields: Mapping[str, object], *, wide: bool = False) -> str:
    """A C initialiser by names, one a line if ``wide``; strings stand as they are."""
    texts = [f".{name} = {_literal(value)}" for name, value in fields.items()]
    return "{\n" + "".join(f"    {text},\n" for text in texts) + "}" if wide else _in_line(texts)


def _in_line(texts: list[str]) -> str:
    return "{" + ", ".join(texts) + "}"


def shared(multipliers: Array, call: str) -> tuple[tuple[tuple[str, Array], ...], str]:
    """Multipliers as a constant array, or a single one within the call, where it is a literal."""
    if multipliers.size > 1:
        return (("multipliers", multipliers),), call
    return (), f"static const int32_t multipliers[1] = {{{multipliers[0]}}};\n{call}"


def c_call(function: str, operands: tuple[str, ...], fields: str) -> str:
    """A call whose last argument is a ``struct`` of the function's name."""
    return f"{function}({', '.join(operands)}, (struct {function}){fields});"


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def rounded_up(count: int, multiple: int) -> int:
    """The next multiple, if it is none."""
    return -(-count // multiple) * multiple
