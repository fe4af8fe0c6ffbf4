"""Convolutions as calls of ``entrain_convolution``, or ``entrain_matmul`` if patches lie whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from textwrap import indent

import numpy as np

from entrain.deploy.lowering.graph import Array, Layer
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.kernels.images import (
    Image,
    Window,
    c_call,
    image_of,
    rescale_text,
    result_image,
    rounded_up,
    shared,
    source_of,
    structure,
    window_of,
)
from entrain.deploy.lowering.kernels.rescaled_sum import (
    LEAST_SHIFT,
    RescaledSum,
    along,
    rescaled_sum,
)
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.leaves import Constant
from entrain.deploy.lowering.schedules.blocks import MatmulShape, matmul_blocks
from entrain.deploy.lowering.views import View, view_of

VECTOR_BYTES = 16
UNSIGNED_OFFSET = 128  # what kernels take off unsigned bytes
LARGEST_SUM = 2**31 - 1


@dataclass(frozen=True)
class ConvolutionLayer:
    """A layer that is a convolution of a stored image with constant weights, rescaled."""

    layer: Layer
    found: RescaledSum
    view: View
    image: Image
    window: Window
    weights: Array  # [output channel, input channel of its group, row, column]
    groups: int
    result: Image

    @property
    def is_padded(self) -> bool:
        """Whether any output sees something beyond the image."""
        seen_rows = self.window.seen_rows(self.result.rows) - self.window.top
        seen_columns = self.window.seen_columns(self.result.columns) - self.window.left
        beyond = seen_rows > self.image.rows or seen_columns > self.image.columns
        return beyond or self.window.top > 0 or self.window.left > 0

    @property
    def folded_bias(self) -> Array:
        """The bias with the zero point taken off the input, int64, of the sum's shape."""
        zero_point = self.view.zero_point
        offset = UNSIGNED_OFFSET if self.view.value.dtype == "uint8" else 0
        sums = self.weights.astype(np.int64).sum(axis=(1, 2, 3)).reshape(1, -1, 1, 1)
        folded: Array = self.found.bias - (zero_point - offset) * sums
        return folded

    @property
    def reach(self) -> int:
        """The largest sum on the way, of bytes as they are stored."""
        sizes = np.abs(self.weights.astype(np.int64)).sum(axis=(1, 2, 3)).reshape(1, -1, 1, 1)
        return int((np.abs(self.folded_bias) + UNSIGNED_OFFSET * sizes).max())

    @property
    def multipliers(self) -> Array:
        """One multiplier, or one for each output channel."""
        multipliers = along(1, self.found.multipliers)
        assert multipliers is not None  # convolution_layer made sure
        same = len(set(multipliers.tolist())) == 1
        return (multipliers[:1] if same else multipliers).astype(np.int32)

    @property
    def depth(self) -> int:
        """Products in a sum."""
        return prod(self.weights.shape[1:])

    @property
    def source(self) -> str:
        """C of where the image begins."""
        return source_of(self.view)


def convolution_layer(layer: Layer) -> ConvolutionLayer | None:
    """The layer as a convolution whose result a kernel can write; else None."""
    found = rescaled_sum(layer)
    if found is None or not isinstance(found.sum.operator, Convolution):
        return None
    operator, (operand, weights) = found.sum.operator, found.sum.operands
    view, result = view_of(operand), result_image(found)
    if view is None or result is None or along(1, found.multipliers) is None:
        return None
    image = image_of(view)
    if image is None or result.channel_bytes != 1 or not _is_stored(view.zero_point, view):
        return None
    if not isinstance(weights.operator, Constant) or weights.dtype != "int8":
        return None
    top, left, _, _ = operator.padding
    window = window_of(weights.shape[2:], operator.strides, operator.dilation, (top, left))
    array = weights.operator.reference()
    if image.rows == window.rows == result.rows == 1:
        # over one axis: a band of it is a band of rows
        image, window, result = image.upright, window.upright, result.upright
        array = array.transpose(0, 1, 3, 2)
    convolution = ConvolutionLayer(
        layer, found, view, image, window, array, operator.groups, result
    )
    return None if convolution.reach > LARGEST_SUM else convolution


def _is_stored(number: int, view: View) -> bool:
    """Whether the value's type holds a number: padding is stored as the zero point."""
    limits = np.iinfo(view.value.dtype)
    return bool(limits.min <= number <= limits.max)


def match_convolution(layer: Layer) -> Kernel | None:
    """The kernel of a layer that is a convolution."""
    convolution = convolution_layer(layer)
    if convolution is None or not convolution.result.is_dense:
        return None
    stride = _patch_stride(convolution)
    return _gathered(convolution) if stride is None else _product(convolution, stride)


def _patch_stride(convolution: ConvolutionLayer) -> int | None:
    """Bytes from one patch to the next where patches lie whole in the image, one behind the other.

    Such are those of a kernel of one pixel, or as wide as the image. None if they do not.
    """
    image, window, result = convolution.image, convolution.window, convolution.result
    if convolution.is_padded or convolution.groups > 1 or image.channel_bytes != 1:
        return None
    pixels = window.columns == 1 or (
        window.column_dilation == 1 and image.pixel_bytes == image.channels
    )
    rows = window.rows == 1 or (
        window.row_dilation * image.row_bytes == window.columns * image.channels
    )
    across, down = window.column_stride * image.pixel_bytes, window.row_stride * image.row_bytes
    if not (pixels and rows):
        return None
    if result.columns == 1:
        return down
    return across if result.rows == 1 or down == result.columns * across else None


def _product(convolution: ConvolutionLayer, stride: int) -> Kernel:
    """The convolution as a matrix product of what lies in memory."""
    operands = (convolution.source, "weights", "bias", "multipliers", "NULL", "scratch", "output")
    call = c_call("entrain_matmul", operands, _product_text(convolution, stride))
    return _kernel(convolution, "entrain_matmul.h", call, 0)


def _gathered(convolution: ConvolutionLayer) -> Kernel:
    """The convolution by patches that are gathered first, one group of channels after the other."""
    image, window, result = convolution.image, convolution.window, convolution.result
    part = replace(image, channels=image.channels // convolution.groups)
    is_padded = (
        convolution.is_padded or part.channel_bytes != 1 or part.pixel_bytes != part.channels
    )
    row_bytes = window.seen_columns(result.columns) * part.channels
    band = window.band(result.rows, row_bytes) if is_padded else result.rows
    padded = rounded_up(window.seen_rows(band) * row_bytes, 8) if is_padded else 0
    fields = {
        "image": part.c_text(),
        "window": window.c_text(),
        "output": result.c_text(),
        "product": _product_text(convolution, rounded_up(convolution.depth, 4)),
        "zero_point": convolution.view.zero_point,
        "is_padded": is_padded,
        "band": band,
    }
    call = c_call("entrain_convolution", _operands(convolution), structure(fields, wide=True))
    if convolution.groups > 1:
        loop = f"for (int32_t group = 0; group < {convolution.groups}; group++) {{"
        call = f"{loop}\n{indent(call, '    ')}\n}}"
    return _kernel(convolution, "entrain_convolution.h", call, padded, gathers=True)


def _operands(convolution: ConvolutionLayer) -> tuple[str, ...]:
    """C of the arguments, from the group's channels on."""
    groups, outputs = convolution.groups, convolution.result.channels // convolution.groups
    inputs = convolution.image.channels // groups * convolution.image.channel_bytes
    each = "" if convolution.multipliers.size == 1 else f" + group * {outputs}"
    if groups == 1:
        return (convolution.source, "weights", "bias", "multipliers", "scratch", "output")
    return (
        f"{convolution.source} + group * {inputs}",
        f"weights + group * {outputs * rounded_up(convolution.depth, 4)}",
        f"bias + group * {outputs}",
        f"multipliers{each}",
        "scratch",
        f"output + group * {outputs}",
    )


def _product_text(convolution: ConvolutionLayer, input_stride: int) -> str:
    """``struct entrain_matmul`` with a row for each pixel of the result."""
    result, name = convolution.result, convolution.layer.name.upper()
    one_bias = along(1, convolution.folded_bias) is not None
    return structure(
        {
            "rows": result.rows * result.columns,
            "depth": convolution.depth,
            "columns": result.channels // convolution.groups,
            "input_stride": input_stride,
            "output_stride": result.pixel_bytes,
            "input_is_unsigned": convolution.view.value.dtype == "uint8",
            "block_rows": f"{name}_ROWS",
            "block_columns": f"{name}_COLUMNS",
            "rescale": rescale_text(convolution.found, convolution.found.requantize.shift),
            **({} if one_bias else {"bias_stride": result.channels}),
        }
    )


def _kernel(
    convolution: ConvolutionLayer, header: str, call: str, padded: int, gathers: bool = False
) -> Kernel:
    """The call with its constants and its scratch: padded image, patches, widened patches."""
    pitch, found = rounded_up(convolution.depth, 4), convolution.found
    outputs = convolution.result.channels // convolution.groups
    pixels = convolution.result.rows * convolution.result.columns
    wide = found.requantize.shift < LEAST_SHIFT
    blocks = matmul_blocks(MatmulShape(pixels, convolution.depth, outputs, wide))
    patches = {
        name: rounded_up(max(block.rows for block in offered) * pitch, 8)
        for name, offered in blocks
    }
    scratch = padded + max(
        (size if gathers else 0) + (2 * size if name == "dsp" else 0)
        for name, size in patches.items()
    )
    multipliers, call = shared(convolution.multipliers, call)
    constants = (
        ("weights", in_rows(convolution.weights)),
        ("bias", _in_rows_of_pixels(convolution.folded_bias.astype(np.int32))),
        *multipliers,
    )
    return Kernel(convolution.layer, header, call, constants, scratch, blocks)


def in_rows(weights: Array) -> Array:
    """[output channel][row, column, input channel], each row filled up to whole words.

    Behind the last one lie zeros for vectors that read on.
    """
    flat = weights.transpose(0, 2, 3, 1).reshape(len(weights), -1)
    columns, depth = flat.shape
    pitch = rounded_up(depth, 4)
    filled = np.zeros(columns * pitch + rounded_up(depth, VECTOR_BYTES) - pitch, np.int8)
    filled[: columns * pitch].reshape(columns, pitch)[:, :depth] = flat
    return filled


def _in_rows_of_pixels(bias: Array) -> Array:
    """A number for each channel, or a row of them for each pixel."""
    for_all = along(1, bias)
    return bias[0].transpose(1, 2, 0).reshape(-1, bias.shape[1]) if for_all is None else for_all
