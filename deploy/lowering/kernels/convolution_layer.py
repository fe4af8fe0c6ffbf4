"""A layer as a convolution: what kernels of convolutions and depthwise ones read of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from entrain.deploy.lowering.graph import Array, Layer
from entrain.deploy.lowering.kernels.c_source import source_of
from entrain.deploy.lowering.kernels.images import (
    Image,
    Window,
    image_of,
    result_image,
    window_of,
)
from entrain.deploy.lowering.kernels.rescaled_sum import (
    LARGEST_SUM,
    UNSIGNED_OFFSET,
    RescaledSum,
    along,
    offset_of,
    rescaled_sum,
)
from entrain.deploy.lowering.kernels.steps import Touched, may_overwrite
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.leaves import Constant
from entrain.deploy.lowering.views import View, view_of


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
        sums = self.weights.astype(np.int64).sum(axis=(1, 2, 3)).reshape(1, -1, 1, 1)
        folded: Array = self.found.bias - offset_of(self.view) * sums
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
        needed = multipliers if self.found.for_each_channel else multipliers[:1]
        return needed.astype(np.int32)

    @property
    def depth(self) -> int:
        """Products in a sum."""
        return prod(self.weights.shape[1:])

    @property
    def source(self) -> str:
        """C of where the image begins."""
        return source_of(self.view)

    def overwrites(self, read: Touched, written: Touched) -> tuple[str, ...]:
        """The value, if the result may take its bytes; ``read`` counts from the image's first."""
        places = replace(read, places=self.view.offset + read.places)
        value = self.view.value
        return (value.name,) if may_overwrite(value, places, written) else ()


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
    if image is None or not _holds(view, view.zero_point):
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


def _holds(view: View, number: int) -> bool:
    """Whether the value's type holds a number: padding is stored as the zero point."""
    limits = np.iinfo(view.value.dtype)
    return bool(limits.min <= number <= limits.max)
