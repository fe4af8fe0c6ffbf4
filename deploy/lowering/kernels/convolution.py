"""Convolutions as calls of ``entrain_convolution``, or ``entrain_matmul`` if patches lie whole."""

from __future__ import annotations

from dataclasses import replace
from textwrap import indent

import numpy as np

from entrain.deploy.lowering.graph import Array, Layer
from entrain.deploy.lowering.kernels.c_source import c_call, declared, rounded_up, structure
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.kernels.convolution_layer import ConvolutionLayer, convolution_layer
from entrain.deploy.lowering.kernels.packed_weights import (
    ProductWeights,
    as_bytes,
    product_weights,
)
from entrain.deploy.lowering.kernels.rescaled_sum import LEAST_SHIFT, along
from entrain.deploy.lowering.kernels.steps import Touched
from entrain.deploy.lowering.kernels.weights_layout import padded_depth
from entrain.deploy.lowering.schedules.blocks import Candidates, MatmulShape

PADDED_BYTES = 256  # of the arena, for the rows that a band of output rows sees; more if need be


def match_convolution(layer: Layer) -> Kernel | None:
    """The kernel of a layer that is a convolution."""
    convolution = convolution_layer(layer)
    if convolution is None or convolution.result.pitch is None:
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
    weights = product_weights(_matrix(convolution))
    constants, declaration = _constants(convolution, weights)
    source, *behind, output = _operands(convolution, weights)
    apart, in_place = (
        declaration
        + weights.called(
            c_call(
                "entrain_matmul",
                (source, *behind[:3], "NULL", *behind[3:], output),
                _product_text(convolution, weights, stride, is_in_place=choice),
            )
        )
        for choice in (False, True)
    )
    result = convolution.result
    pixels = np.arange(result.rows * result.columns)[:, None]
    read = Touched(pixels * stride + np.arange(convolution.depth), pixels)
    written = Touched(result.places.reshape(len(pixels), -1), pixels)
    blocks = _blocks(convolution, weights)
    return Kernel(
        convolution.layer,
        "entrain_matmul.h",
        apart,
        constants,
        weights.scratch_bytes + _widened_bytes(_patch_bytes(convolution, blocks)),
        blocks,
        convolution.overwrites(read, written) if weights.calls == 1 else (),
        ((convolution.view.value.name, in_place),),
    )


def _gathered(convolution: ConvolutionLayer) -> Kernel:
    """The convolution by patches that are gathered first, one group of channels after the other."""
    image, window, result = convolution.image, convolution.window, convolution.result
    part = replace(image, channels=image.channels // convolution.groups)
    matrix = _matrix(convolution)
    weights = product_weights(matrix) if convolution.groups == 1 else as_bytes(matrix)
    is_padded = (
        convolution.is_padded or part.channel_bytes != 1 or part.pixel_bytes != part.channels
    )
    row_bytes = window.seen_columns(result.columns) * part.channels
    band = window.band(result.rows, row_bytes, PADDED_BYTES) if is_padded else result.rows
    padded = rounded_up(window.seen_rows(band) * row_bytes, 8) if is_padded else 0
    fields = {
        "image": part.c_text(),
        "window": window.c_text(),
        "output": result.c_text(),
        "product": _product_text(convolution, weights, padded_depth(convolution.depth)),
        "zero_point": convolution.view.zero_point,
        "is_padded": is_padded,
        "band": band,
    }
    operands = _operands(convolution, weights)
    call = weights.called(c_call("entrain_convolution", operands, structure(fields, wide=True)))
    if convolution.groups > 1:
        loop = f"for (int32_t group = 0; group < {convolution.groups}; group++) {{"
        call = f"{loop}\n{indent(call, '    ')}\n}}"
    constants, declaration = _constants(convolution, weights)
    blocks = _blocks(convolution, weights)
    return Kernel(
        convolution.layer,
        "entrain_convolution.h",
        declaration + call,
        constants,
        weights.scratch_bytes + padded + _gathered_bytes(_patch_bytes(convolution, blocks)),
        blocks,
        _overwrites_gathered(convolution, is_padded=is_padded) if weights.calls == 1 else (),
    )


def _overwrites_gathered(convolution: ConvolutionLayer, *, is_padded: bool) -> tuple[str, ...]:
    """A row is copied before the first output row that sees it; patches are gathered in order."""
    image, window, result = convolution.image, convolution.window, convolution.result
    groups = [
        np.arange(each.channels) // (each.channels // convolution.groups) * result.rows
        for each in (image, result)
    ]
    if is_padded:
        rows, columns = window.first_seen(image.rows, result.rows), np.zeros(image.columns, int)
    else:
        rows = window.last_seen(image.rows, result.rows)
        columns = window.upright.last_seen(image.columns, result.columns)
    read = (groups[0] + rows[:, None, None]) * result.columns + columns[:, None]
    y, x, _ = np.ogrid[: result.rows, : result.columns, :1]
    written = (groups[1] + y) * result.columns + x
    return convolution.overwrites(Touched(image.places, read), Touched(result.places, written))


def _operands(convolution: ConvolutionLayer, weights: ProductWeights) -> tuple[str, ...]:
    """C of the arguments, from the group's channels on, or from those of one call."""
    groups, outputs = convolution.groups, convolution.result.channels // convolution.groups
    inputs = convolution.image.channels // groups * convolution.image.channel_bytes
    has_one = convolution.multipliers.size == 1
    if groups == 1:
        return (
            convolution.source,
            weights.operand,
            weights.columns_of("bias"),
            "multipliers" if has_one else weights.columns_of("multipliers"),
            weights.scratch,
            weights.columns_of("output", convolution.result.channel_bytes),
        )
    return (
        f"{convolution.source} + group * {inputs}",
        f"weights + group * {outputs * padded_depth(convolution.depth)}",
        f"bias + group * {outputs}",
        "multipliers" if has_one else f"multipliers + group * {outputs}",
        "scratch",
        f"output + group * {outputs * convolution.result.channel_bytes}",
    )


def _product_text(
    convolution: ConvolutionLayer,
    weights: ProductWeights,
    input_stride: int,
    *,
    is_in_place: bool = False,
) -> str:
    """``struct entrain_matmul`` with a row for each pixel of the result."""
    result, name = convolution.result, convolution.layer.name.upper()
    one_bias = along(1, convolution.folded_bias) is not None
    return structure(
        {
            "rows": result.rows * result.columns,
            "depth": convolution.depth,
            "columns": weights.columns // convolution.groups,
            "input_stride": input_stride,
            "output_stride": result.pitch,
            **({} if result.channel_bytes == 1 else {"output_gap": result.channel_bytes - 1}),
            "input_is_unsigned": convolution.view.value.dtype == "uint8",
            "block_rows": f"{name}_ROWS",
            "block_columns": f"{name}_COLUMNS",
            "rescale": convolution.found.rescale_text(convolution.found.requantize.shift),
            **({} if one_bias else {"bias_stride": result.channels}),
            **({"is_in_place": True} if is_in_place else {}),
        }
    )


def _blocks(convolution: ConvolutionLayer, weights: ProductWeights) -> Candidates:
    """Register blocks of the product of a group's patches with its weights."""
    pixels = convolution.result.rows * convolution.result.columns
    outputs = convolution.result.channels // convolution.groups
    wide = convolution.found.requantize.shift < LEAST_SHIFT
    return weights.blocks(MatmulShape(pixels, convolution.depth, outputs, wide))


def _matrix(convolution: ConvolutionLayer) -> Array:
    """A row of weights for each output channel, in the order of a patch."""
    by_pixels = convolution.weights.transpose(0, 2, 3, 1)
    return by_pixels.reshape(len(by_pixels), -1)


def _patch_bytes(convolution: ConvolutionLayer, blocks: Candidates) -> dict[str, int]:
    """For each instruction set, bytes of the patches of a block of rows."""
    return {
        name: rounded_up(max(block.rows for block in offered) * padded_depth(convolution.depth), 8)
        for name, offered in blocks
    }


def _widened_bytes(patches: dict[str, int]) -> int:
    """For DSP the patches of a block of rows in 16 bits."""
    return 2 * patches["dsp"]


def _gathered_bytes(patches: dict[str, int]) -> int:
    """Patches that are gathered, those in 16 bits behind them; the most of any instruction set."""
    return max(*patches.values(), patches["dsp"] + _widened_bytes(patches))


def _constants(
    convolution: ConvolutionLayer, weights: ProductWeights
) -> tuple[tuple[tuple[str, Array], ...], str]:
    """Weights, bias and multipliers for flash; and C that declares what does not lie there."""
    multipliers, declaration = declared(convolution.multipliers)
    constants = (
        weights.constant,
        ("bias", _in_rows_of_pixels(convolution.folded_bias.astype(np.int32))),
        *multipliers,
    )
    return constants, declaration


def _in_rows_of_pixels(bias: Array) -> Array:
    """A number for each channel, or a row of them for each pixel."""
    for_all = along(1, bias)
    return bias[0].transpose(1, 2, 0).reshape(-1, bias.shape[1]) if for_all is None else for_all
