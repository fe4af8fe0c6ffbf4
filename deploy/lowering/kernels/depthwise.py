"""Depthwise convolutions as calls of ``entrain_depthwise``."""

from __future__ import annotations

from math import prod

import numpy as np

from entrain.deploy.lowering.graph import Array, Layer
from entrain.deploy.lowering.kernels.c_source import c_call, declared, rounded_up, structure
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.kernels.convolution_layer import ConvolutionLayer, convolution_layer
from entrain.deploy.lowering.kernels.rescaled_sum import along
from entrain.deploy.lowering.kernels.steps import Touched

BLOCK = 16  # channels, ENTRAIN_CHANNEL_BLOCK
SMALL = 4  # rows and columns at most, ENTRAIN_SMALL_KERNEL
PLANE_BYTES = 1024  # of the arena, for what a band of output rows sees; more if need be
FARTHEST_BYTE = 255  # from an output's corner, for sixteen positions at a time
LARGEST_OFFSET = 2**16 - 1  # of bytes that vectors take from apart
TOGETHER = 8  # of them at once
FEW_CHANNELS = 8  # are computed one by one with vectors; more of them are a block


def match_depthwise(layer: Layer) -> Kernel | None:
    """The kernel of a layer that is a convolution of each channel with a kernel of its own."""
    convolution = convolution_layer(layer)
    if convolution is None:
        return None
    channels = convolution.image.channels
    bias = along(1, convolution.folded_bias)
    if convolution.groups != channels or len(convolution.weights) != channels or bias is None:
        return None
    if channels == 1 and convolution.weights.shape[2:] == (1, 1):
        return None
    whole = rounded_up(channels, BLOCK)
    strips = _strips(convolution)
    band, plane_bytes = _plane(convolution, _plane_pitch(convolution))
    vector_band, patch_bytes = _patches(convolution)
    if strips == channels:
        patch_bytes = 0
    elif not _within_offsets(convolution, patch_bytes):
        return None
    fields = {
        "image": convolution.image.c_text(),
        "window": convolution.window.c_text(),
        "output": convolution.result.c_text(),
        "rescale": convolution.found.rescale_text(convolution.found.shift),
        "zero_point": convolution.view.zero_point,
        "is_unsigned": convolution.view.value.dtype == "uint8",
        "is_small": not _is_large(convolution),
        "band": band,
        "vector_band": vector_band,
        "strips": strips,
        "rise": convolution.found.rise,
    }
    operands = (convolution.source, "weights", "bias", "multipliers", "scratch", "output")
    multipliers = convolution.multipliers
    each = _filled_up(multipliers, whole) if multipliers.size > 1 else multipliers
    more, declaration = declared(each)
    call = declaration + c_call("entrain_depthwise", operands, structure(fields, wide=True))
    weights = in_squares if not _is_large(convolution) else in_columns
    constants = (
        ("weights", weights(convolution.weights)),
        ("bias", _filled_up(bias, whole)),
        *more,
    )
    needed = [plane_bytes, patch_bytes, _strip_bytes(convolution) if strips else 0]
    one_by_one = np.arange(channels)
    in_blocks = np.where(one_by_one < strips, one_by_one // BLOCK, one_by_one)
    overwrites = _overwrites(convolution, one_by_one) and _overwrites(convolution, in_blocks)
    return Kernel(layer, "entrain_depthwise.h", call, constants, max(needed), overwrites=overwrites)


def _strips(convolution: ConvolutionLayer) -> int:
    """Channels that vectors compute in blocks: of small kernels, unless only a few are left."""
    image, result = convolution.image, convolution.result
    if _is_large(convolution) or image.channel_bytes != 1 or result.channel_bytes != 1:
        return 0
    left = image.channels % BLOCK
    return image.channels - (left if left <= FEW_CHANNELS else 0)


def _overwrites(convolution: ConvolutionLayer, turns: Array) -> tuple[str, ...]:
    """Channels of the same turn together, an output row after the other.

    Each row of the image is read once, before the first output row that sees it; for strips of rows
    that are not neighbours, again and again to the last.
    """
    image, window, result = convolution.image, convolution.window, convolution.result
    are_neighbours = window.row_stride == window.row_dilation == 1
    is_kept = are_neighbours or not _strips(convolution)
    seen = window.first_seen if is_kept else window.last_seen
    blocks = turns * result.rows
    read = blocks + seen(image.rows, result.rows)[:, None, None]
    written = blocks + np.arange(result.rows)[:, None, None]
    return convolution.overwrites(Touched(image.places, read), Touched(result.places, written))


def _is_large(convolution: ConvolutionLayer) -> bool:
    """Whether the weights of a channel fill more than a square of small kernels."""
    return bool(max(convolution.weights.shape[2:]) > SMALL)


def _plane(convolution: ConvolutionLayer, pitch: int) -> tuple[int, int]:
    """Output rows at a time, and bytes of the rows that they see with one number to spare."""
    window = convolution.window
    band = window.band(convolution.result.rows, pitch, PLANE_BYTES)
    return band, window.seen_rows(band) * pitch + 2


def _plane_pitch(convolution: ConvolutionLayer) -> int:
    """Bytes of a row of one channel in 16 bits: even numbers of them, unless it is one column."""
    columns = convolution.window.seen_columns(convolution.result.columns)
    return 2 * (1 if _is_line(convolution) else rounded_up(columns + 1, 2))


def _is_line(convolution: ConvolutionLayer) -> bool:
    image, window, result = convolution.image, convolution.window, convolution.result
    return image.columns == window.columns == result.columns == 1


def _patches(convolution: ConvolutionLayer) -> tuple[int, int]:
    """Output rows at a time, and bytes of the places of weights and of the rows that are seen.

    A column of the plane is as long as the rows that a band sees; so the fewer, the nearer do a
    kernel's positions lie together.
    """
    window, result = convolution.window, convolution.result
    columns = window.seen_columns(result.columns)
    near = FARTHEST_BYTE - (window.rows - 1) * window.row_dilation
    across = (window.columns - 1) * window.column_dilation
    most = min(PLANE_BYTES, near // across * columns) if across else PLANE_BYTES
    band = window.band(result.rows, columns, most)
    count = SMALL**2 if not _is_large(convolution) else prod(convolution.weights.shape[2:])
    places = 2 * rounded_up(count, BLOCK)
    return band, places + window.seen_rows(band) * columns


def _within_offsets(convolution: ConvolutionLayer, patch_bytes: int) -> bool:
    """Whether vectors reach the pixels that they copy together, and all of the plane."""
    image = convolution.image
    apart = image.row_bytes if _is_line(convolution) else image.pixel_bytes
    return TOGETHER * max(apart, patch_bytes) <= LARGEST_OFFSET


def _strip_bytes(convolution: ConvolutionLayer) -> int:
    """Zero points of a block, then four of its rows, columns read beyond the kernel included."""
    window = convolution.window
    beyond = (SMALL - window.columns) * window.column_dilation
    columns = window.seen_columns(convolution.result.columns) + beyond
    return BLOCK + columns * BLOCK * SMALL


def in_squares(weights: Array) -> Array:
    """[channel, 1, row, column] as [channel][column][row], four of each, channels in blocks."""
    channels, _, rows, columns = weights.shape
    squares = np.zeros((rounded_up(channels, BLOCK), SMALL, SMALL), np.int8)
    squares[:channels, :columns, :rows] = weights[:, 0].transpose(0, 2, 1)
    return squares


def in_columns(weights: Array) -> Array:
    """[channel, 1, row, column] as [channel][column][row], each filled up to whole vectors."""
    channels = len(weights)
    flat = weights[:, 0].transpose(0, 2, 1).reshape(channels, -1)
    columns = np.zeros((channels, rounded_up(flat.shape[1], BLOCK)), np.int8)
    columns[:, : flat.shape[1]] = flat
    return columns


def _filled_up(numbers: Array, count: int) -> Array:
    filled = np.zeros(count, np.int32)
    filled[: numbers.size] = numbers
    return filled
