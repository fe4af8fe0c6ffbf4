"""Layers with any geometry: convolutions and average pools over images with channels last."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from entrain.deploy.arithmetic import fixed_point, integer_range
from entrain.deploy.lowering.graph import Layer, Node, Value
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.elementwise import ADD_INTEGERS
from entrain.deploy.lowering.operators.layout import Reshape, Slice, permuted
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.operators.pool import PoolSum, Window
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.operators.reduction import Sum
from entrain.deploy.lowering.translations.offsets import less

Choose = Callable[[int, int], int]  # any number from the first to the second
LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
AS_IT_IS = (0, 1, 2, 3)


def image(source: Value, shape: tuple[int, int, int], choose: Choose) -> Node:
    """Rows, columns and channels somewhere in a value of one axis, as (1, C, Y, X)."""
    count = int(np.prod(shape))
    start = choose(0, source.size - count)
    part = apply(Slice(0, start, 1, count), load(source))
    stored = permuted(apply(Reshape((1, *shape)), part), FIRST)
    return less(stored, source.zero_point)


def rescaled(
    name: str,
    source: Value,
    summed: Node,
    choose: Choose,
    *,
    bias: bool,
    step: float,
    positions: bool = False,
    order: tuple[int, int, int, int] = LAST,
) -> Layer:
    """The sums in an order, with a bias and rescaled to bytes of about every size.

    The bias is one for each channel, or one for each channel at each position.
    """
    channels, random = summed.shape[1], np.random.default_rng(choose(0, 2**30))
    moved = permuted(summed, order)
    of_channels = tuple(channels if axis == 1 else 1 for axis in order)
    if bias:
        shape = moved.shape if positions else of_channels
        added = random.integers(-300, 300, shape).astype(np.int32)
        moved = apply(ADD_INTEGERS, moved, constant(added))
    per_channel = bias and choose(0, 1)
    size = (1, 1, 1, 50)[choose(0, 3)]  # at times most of the result is clipped
    factors = size * step * random.uniform(0.3, 1, of_channels if per_channel else ())
    peak = int(max(map(abs, moved.interval)))
    fixed = fixed_point((np.asarray(factors),), np.zeros(()), (peak,))
    dtype = ("int8", "uint8")[choose(0, 1)]
    low, high = integer_range(dtype)
    zero_point = choose(low, high)
    bounds = ((low, high), (zero_point, high), (low, zero_point))[choose(0, 2)]
    operator = Requantize(moved.shape, dtype, 1, 0, fixed.shift, zero_point, *bounds)
    expression = apply(operator, moved, constant(fixed.multipliers[0]), constant(fixed.bias))
    result = Value(name, moved.shape, dtype, 1.0, zero_point, name, order)
    return Layer(name, "window", (source,), result, expression)


def _window(choose: Choose, extents: tuple[int, int], dilations: int) -> dict[str, tuple[int, ...]]:
    """A window that always sees something of the image."""
    dilation = tuple(choose(1, dilations) for _ in extents)
    kernel = tuple(
        choose(1, (n - 1) // d + 1 if n < 6 else 8 // d + 1)
        for n, d in zip(extents, dilation, strict=True)
    )
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    fits = [max(0, r + 1 - n) for r, n in zip(reach, extents, strict=True)]
    padding = (
        tuple(choose(0, reach[i % 2]) for i in range(2)),
        tuple(choose(fits[i], max(reach[i], fits[i])) for i in range(2)),
    )
    return {
        "kernel": kernel,
        "strides": tuple(choose(1, 3) for _ in extents),
        "padding": (*padding[0], *padding[1]),
        "dilation": dilation,
    }


def convolution(
    name: str, source: Value, choose: Choose, groups: str = "one", *, positions: bool = False
) -> Layer:
    """One group of channels, a few of them, or as many as there are channels.

    The result has its channels last, or first as a network's output does.
    """
    count = {"one": 1, "some": choose(2, 3), "depthwise": choose(1, 37)}[groups]
    each = 1 if groups == "depthwise" else choose(1, 7)
    outputs = 1 if groups == "depthwise" else choose(1, 11)
    extents = (choose(1, 9), choose(1, 7))
    window = _window(choose, extents, 2)
    operator = Convolution(window["strides"], window["padding"], window["dilation"], count)
    random = np.random.default_rng(choose(0, 2**30))
    shape = (count * outputs, each, *window["kernel"])
    weights = constant(random.integers(-128, 128, shape).astype(np.int8))
    operand = image(source, (*extents, count * each), choose)
    if not operator.sees_the_image(operand, weights):
        operator = Convolution((1, 1), (0, 0, 0, 0), (1, 1), count)
        weights = constant(weights.operator.reference()[:, :, :1, :1].copy())
    step = 1 / (80 * float(np.sqrt(each * np.prod(window["kernel"]))))
    summed = apply(operator, operand, weights)
    order = (LAST, AS_IT_IS)[choose(0, 1)]
    return rescaled(
        name, source, summed, choose, bias=True, step=step, positions=positions, order=order
    )


def depthwise(
    name: str,
    source: Value,
    choose: Choose,
    shape: tuple[int, int, int],
    kernel: tuple[int, int],
    operator: Convolution,
    order: tuple[int, int, int, int] = LAST,
) -> Layer:
    """An image of rows, columns and channels, each channel with a kernel of its own."""
    random = np.random.default_rng(choose(0, 2**30))
    weights = random.integers(-128, 128, (shape[2], 1, *kernel)).astype(np.int8)
    summed = apply(operator, image(source, shape, choose), constant(weights))
    step = 1 / (80 * float(np.sqrt(np.prod(kernel))))
    return rescaled(name, source, summed, choose, bias=True, step=step, order=order)


def over_all_columns(name: str, source: Value, choose: Choose) -> Layer:
    """A kernel as wide as the image, and a bias of its own for each row."""
    rows, columns, channels, outputs = choose(1, 9), choose(1, 6), choose(1, 5), choose(1, 9)
    random = np.random.default_rng(choose(0, 2**30))
    weights = random.integers(-128, 128, (outputs, channels, 1, columns)).astype(np.int8)
    operator = Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    summed = apply(operator, image(source, (rows, columns, channels), choose), constant(weights))
    added = random.integers(-300, 300, (1, outputs, rows, 1)).astype(np.int32)
    shifted = apply(ADD_INTEGERS, summed, constant(added))
    return rescaled(name, source, shifted, choose, bias=False, step=0.003)


def average(name: str, source: Value, choose: Choose) -> Layer:
    """Sums of windows that move."""
    extents, channels = (choose(1, 9), choose(1, 7)), choose(1, 9)
    window = Window(**_window(choose, extents, 1))  # type: ignore[arg-type]
    summed = apply(PoolSum(window), image(source, (*extents, channels), choose))
    return rescaled(name, source, summed, choose, bias=False, step=1 / np.prod(window.kernel))


def mean(name: str, source: Value, choose: Choose) -> Layer:
    """Sums of all of an image."""
    shape = choose(1, 9), choose(1, 7), choose(1, 9)
    summed = apply(Sum((2, 3)), image(source, shape, choose))
    return rescaled(name, source, summed, choose, bias=False, step=1 / (shape[0] * shape[1]))


def layers(sources: tuple[Value, ...], choose: Choose) -> list[Layer]:
    """One of each kind, each of one of the sources."""

    def source() -> Value:
        return sources[choose(0, len(sources) - 1)]

    return [
        convolution("plain", source(), choose),
        convolution("positioned", source(), choose, positions=True),
        convolution("grouped", source(), choose, "some"),
        convolution("depthwise", source(), choose, "depthwise"),
        over_all_columns("wide", source(), choose),
        average("average", source(), choose),
        mean("mean", source(), choose),
    ]
