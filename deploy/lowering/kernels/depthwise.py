"""Depthwise convolutions as calls of ``entrain_depthwise``."""

from __future__ import annotations

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
LARGEST_BYTE = 128  # of the signed bytes that vectors multiply
LARGEST_HALF = 2**15 - 1


def match_depthwise(layer: Layer) -> Kernel | None:
    """The kernel of a layer that is a convolution of each channel with a kernel of its own."""
    convolution = convolution_layer(layer)
    if convolution is None or convolution.image.channel_bytes != 1:
        return None
    channels = convolution.image.channels
    bias = along(1, convolution.folded_bias)
    if convolution.groups != channels or len(convolution.weights) != channels or bias is None:
        return None
    if channels == 1 and convolution.weights.shape[2:] == (1, 1):
        return None
    whole = rounded_up(channels, BLOCK)
    band, plane_bytes = _plane(convolution, _plane_pitch(convolution))
    vector_band, vector_bytes = _plane(convolution, _block_pitch(convolution))
    is_small = not _is_large(convolution)
    fields = {
        "image": convolution.image.c_text(),
        "window": convolution.window.c_text(),
        "output": convolution.result.c_text(),
        "rescale": convolution.found.rescale_text(convolution.found.shift),
        "zero_point": convolution.view.zero_point,
        "is_unsigned": convolution.view.value.dtype == "uint8",
        "is_small": is_small,
        "band": band,
        "vector_band": vector_band,
        "sums": positions_in_16_bits(convolution.weights),
        "rise": convolution.found.rise,
    }
    operands = (convolution.source, "weights", "bias", "multipliers", "scratch", "output")
    multipliers = convolution.multipliers
    each = _filled_up(multipliers, whole) if multipliers.size > 1 else multipliers
    more, declaration = declared(each)
    call = declaration + c_call("entrain_depthwise", operands, structure(fields, wide=True))
    weights = in_squares if is_small else in_blocks
    constants = (
        ("weights", weights(convolution.weights)),
        ("bias", _filled_up(bias, whole)),
        *more,
    )
    scratch = max(plane_bytes, _strip_bytes(convolution) if is_small else vector_bytes)
    overwrites = _overwrites(convolution, 1) and _overwrites(convolution, BLOCK)
    return Kernel(layer, "entrain_depthwise.h", call, constants, scratch, overwrites=overwrites)


def _overwrites(convolution: ConvolutionLayer, together: int) -> tuple[str, ...]:
    """So many channels together, an output row after the other.

    Each row of the image is read once, before the first output row that sees it; for strips of rows
    that are not neighbours, again and again to the last.
    """
    image, window, result = convolution.image, convolution.window, convolution.result
    are_neighbours = window.row_stride == window.row_dilation == 1
    seen = window.first_seen if are_neighbours or _is_large(convolution) else window.last_seen
    blocks = np.arange(image.channels) // together * result.rows
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
    image, window, result = convolution.image, convolution.window, convolution.result
    is_line = image.columns == window.columns == result.columns == 1
    return 2 * (1 if is_line else rounded_up(window.seen_columns(result.columns) + 1, 2))


def _block_pitch(convolution: ConvolutionLayer) -> int:
    """Bytes of a row of a block of channels."""
    return BLOCK * convolution.window.seen_columns(convolution.result.columns)


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


def in_blocks(weights: Array) -> Array:
    """[channel, 1, row, column] as [block, kernel position, channel of the block]."""
    channels = len(weights)
    flat = np.zeros((rounded_up(channels, BLOCK), weights[0].size), np.int8)
    flat[:channels] = weights.reshape(channels, -1)
    return flat.reshape(-1, BLOCK, flat.shape[1]).transpose(0, 2, 1).copy()


def positions_in_16_bits(weights: Array) -> int:
    """How many kernel positions may be summed up in 16 bits, whatever the image.

    The kernel's positions in order, taken so many at a time.
    """
    sizes = np.abs(weights.reshape(len(weights), -1).astype(np.int64))
    count = sizes.shape[1]
    for positions in range(count, 1, -1):
        sums = np.add.reduceat(sizes, np.arange(0, count, positions), axis=1)
        if sums.max() * LARGEST_BYTE <= LARGEST_HALF:
            return positions
    return 1


def _filled_up(numbers: Array, count: int) -> Array:
    filled = np.zeros(count, np.int32)
    filled[: numbers.size] = numbers
    return filled
