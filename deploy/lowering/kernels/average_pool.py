"""Average pools, and means over the rows of a matrix, as calls of ``entrain_pool``."""

from __future__ import annotations

import numpy as np

from entrain.deploy.lowering.graph import BYTES, Layer
from entrain.deploy.lowering.kernels.c_source import c_call, source_of, structure
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.kernels.images import (
    Image,
    Window,
    image_of,
    result_image,
    window_of,
)
from entrain.deploy.lowering.kernels.rescaled_sum import RescaledSum, rescaled_sum
from entrain.deploy.lowering.kernels.steps import Touched, may_overwrite
from entrain.deploy.lowering.operators.pool import PoolSum
from entrain.deploy.lowering.operators.reduction import Sum
from entrain.deploy.lowering.views import View, view_of

POOLED_CHANNELS = 4  # at a time, ENTRAIN_POOLED_CHANNELS


def match_average_pool(layer: Layer) -> Kernel | None:
    """The kernel of a layer that averages bytes over windows, or over all of an image."""
    found = rescaled_sum(layer)
    if found is None or found.bias.any() or found.for_each_channel:
        return None
    view = view_of(found.sum.operands[0]) if isinstance(found.sum.operator, Sum | PoolSum) else None
    if view is None or view.value.dtype not in BYTES:
        return None
    pool = _window(found, view) if isinstance(found.sum.operator, PoolSum) else _whole(found, view)
    if pool is None or any(image.channel_bytes != 1 for image in (pool[0], pool[2])):
        return None
    image, window, result = pool
    fields = {
        "image": image.c_text(),
        "window": window.c_text(),
        "output": result.c_text(),
        "rescale": found.rescale_text(found.shift),
        "zero_point": view.zero_point,
        "is_unsigned": view.value.dtype == "uint8",
        "rise": found.rise,
    }
    operands = (source_of(view), str(found.multipliers.flat[0]), "output")
    call = c_call("entrain_pool", operands, structure(fields, wide=True))
    overwrites = (view.value.name,) if _may_overwrite(view, *pool) else ()
    return Kernel(layer, "entrain_pool.h", call, (), overwrites=overwrites)


def _may_overwrite(view: View, image: Image, window: Window, result: Image) -> bool:
    """Whether the result may take the image's bytes: output pixels in order, four channels each."""
    groups = np.arange(image.channels) // POOLED_CHANNELS
    rows = window.last_seen(image.rows, result.rows)[:, None, None]
    columns = window.upright.last_seen(image.columns, result.columns)[:, None]
    y, x, _ = np.ogrid[: result.rows, : result.columns, :1]
    read, written = (
        (row * result.columns + column) * (groups[-1] + 1) + groups
        for row, column in ((rows, columns), (y, x))
    )
    places = view.offset + image.places
    return may_overwrite(view.value, Touched(places, read), Touched(result.places, written))


def _window(found: RescaledSum, view: View) -> tuple[Image, Window, Image] | None:
    """A window that moves."""
    operator, image, result = found.sum.operator, image_of(view), result_image(found)
    if not isinstance(operator, PoolSum) or image is None or result is None:
        return None
    window = operator.window
    if window.dilation != (1, 1):
        return None
    top, left, _, _ = window.padding
    return image, window_of(window.kernel, window.strides, (1, 1), (top, left)), result


def _whole(found: RescaledSum, view: View) -> tuple[Image, Window, Image] | None:
    """All of an image: at most two axes that are summed up, one that stays."""
    axes = getattr(found.sum.operator, "axes", ())
    extents = [(axis, extent) for axis, extent in enumerate(view.shape) if extent > 1]
    summed = [axis for axis, _ in extents if axis in axes]
    kept = [axis for axis, _ in extents if axis not in axes]
    if len(summed) > 2 or len(kept) > 1:
        return None
    channels = view.shape[kept[0]] if kept else 1
    steps = [(1, 0), (1, 0), *((view.shape[axis], view.strides[axis]) for axis in summed)]
    (rows, row_bytes), (columns, pixel_bytes) = steps[-2:]
    if (kept and view.strides[kept[0]] != 1) or not _in_order(found, channels):
        return None
    image = Image(rows, columns, channels, row_bytes, pixel_bytes)
    return image, Window(rows, columns, 1, 1, 1, 1, 0, 0), Image(1, 1, channels, channels, channels)


def _in_order(found: RescaledSum, channels: int) -> bool:
    return found.places.reshape(-1).tolist() == list(range(channels))
