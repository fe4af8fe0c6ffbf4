"""Steps of networks that nobody thought of: one operator each, drawn by hypothesis.

A step takes the chain's tensor and shape, and returns new ones, or None where it does not apply.
``reach`` follows the largest magnitude, so that the steps of quantization fit the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import helper
from random_attention import MECHANISMS, Pair

LARGEST = 1500  # elements of a tensor
small = st.integers(1, 4)


@dataclass(frozen=True)
class Chain:
    """The model so far, and its last tensor."""

    model: Any
    tensor: str
    shape: tuple[int, ...]
    reach: float
    quantized: bool

    def then(
        self, tensor: str, shape: Any, reach: float | None = None, quantized: bool = False
    ) -> Chain:
        """One operator more."""
        reach = self.reach if reach is None else reach
        return replace(
            self, tensor=tensor, shape=tuple(map(int, shape)), reach=reach, quantized=quantized
        )

    def ints(self, values: Any) -> str:
        """A constant of int64."""
        return self.model.constant(values, "int64")


Step = Callable[[Any, Chain], Chain | None]


def random(data: Any) -> np.random.Generator:
    return np.random.default_rng(data.draw(st.integers(0, 2**31)))


def integers(data: Any, *shape: int) -> np.ndarray:
    return random(data).integers(-127, 128, shape)


def steps(data: Any, count: int) -> np.ndarray:
    """Of weights, one a channel."""
    return random(data).uniform(0.001, 0.02, count)


def quantize(data: Any, chain: Chain) -> Chain:
    """Random type and zero point; the step is about as large as the numbers need."""
    dtype = data.draw(st.sampled_from(["int8", "uint8"]))
    low, high = (-128, 127) if dtype == "int8" else (0, 255)
    zero = data.draw(st.integers(low, high))
    scale = chain.reach / 255 * data.draw(st.floats(0.6, 2.3))
    tensor = chain.model.quantized(chain.tensor, scale, zero, dtype)
    return chain.then(tensor, chain.shape, scale * 256, quantized=True)


def start(data: Any, model: Any, *shape: int, name: str = "features") -> Chain:
    """An input."""
    reach = data.draw(st.floats(0.5, 20.0))
    return quantize(data, Chain(model, model.input(*shape, name=name), shape, reach, True))


def convolution(data: Any, chain: Chain) -> Chain | None:
    """Over one axis or two; grouped, strided, dilated, padded unevenly; a bias of either kind."""
    spatial = chain.shape[2:]
    if not chain.quantized or len(spatial) not in (1, 2):
        return None
    channels = chain.shape[1]
    groups = data.draw(st.sampled_from([g for g in range(1, channels + 1) if channels % g == 0]))
    outputs = groups * data.draw(st.integers(1, 3 if groups > 1 else 18))
    kernel = [data.draw(st.integers(1, min(3, n))) for n in spatial]
    dilations = [
        data.draw(st.integers(1, max(1, (n - 1) // max(k - 1, 1))))
        for n, k in zip(spatial, kernel, strict=True)
    ]
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    strides = [data.draw(st.integers(1, 3)) for _ in spatial]
    pads = [data.draw(st.integers(0, min(2, span - 1))) for span in spans * 2]
    scale = steps(data, outputs)
    w = chain.model.weights(integers(data, outputs, channels // groups, *kernel), scale)
    inputs = [chain.tensor, w]
    if data.draw(st.booleans()):
        inputs.append(chain.model.weights(integers(data, outputs) * 9, scale * 0.03, dtype="int32"))
    y = chain.model.node(
        "Conv",
        *inputs,
        group=groups,
        strides=strides,
        dilations=dilations,
        pads=pads,
    )
    count = len(spatial)
    extents = [
        (n + pads[k] + pads[count + k] - spans[k]) // strides[k] + 1 for k, n in enumerate(spatial)
    ]
    summed = prod(kernel) * channels // groups
    reach = chain.reach * float(scale.max()) * 64 * summed**0.5 + float(scale.max()) * 40
    return quantize(data, chain.then(y, (1, outputs, *extents), reach))


def product(data: Any, chain: Chain) -> Chain | None:
    """A matrix of weights, by columns or as a whole, with a zero point or without."""
    if not chain.quantized:
        return None
    summed, columns = chain.shape[-1], data.draw(st.integers(1, 40))
    scale = steps(data, columns)
    scale = scale if data.draw(st.booleans()) else scale[0]
    zeros = data.draw(st.integers(-20, 20))
    w = chain.model.weights(
        np.clip(integers(data, summed, columns), -100, 100), scale, zeros, axis=1
    )
    y = chain.model.node("MatMul", chain.tensor, w)
    if data.draw(st.booleans()):
        bias = np.random.default_rng(columns).normal(size=columns)
        y = chain.model.node("Add", y, chain.model.constant(bias))
    reach = chain.reach * float(np.max(scale)) * 64 * summed**0.5 + 2
    return quantize(data, chain.then(y, (*chain.shape[:-1], columns), reach))


def with_itself(data: Any, chain: Chain) -> Chain | None:
    """A product of two activations, as attention's scores are."""
    if not chain.quantized or len(chain.shape) < 3:
        return None
    order = [*range(len(chain.shape) - 2), len(chain.shape) - 1, len(chain.shape) - 2]
    turned = chain.model.node("Transpose", chain.tensor, perm=order)
    y = chain.model.node("MatMul", chain.tensor, turned)
    rows = chain.shape[-2]
    reach = chain.reach**2 * chain.shape[-1] ** 0.5
    return quantize(data, chain.then(y, (*chain.shape[:-2], rows, rows), reach))


def pool(data: Any, chain: Chain) -> Chain | None:
    """The largest or the average, with padding counted or not, and windows over the edge."""
    spatial = chain.shape[2:]
    if not chain.quantized or len(spatial) not in (1, 2):
        return None
    kernel = [data.draw(st.integers(1, min(3, n))) for n in spatial]
    strides = [data.draw(st.integers(1, 3)) for _ in spatial]
    pads = [data.draw(st.integers(0, k // 2)) for k in kernel * 2]
    over = data.draw(st.integers(0, 1))
    count, extents = len(spatial), []
    for k, n in enumerate(spatial):
        free = n + pads[k] + pads[count + k] - kernel[k]
        last = -(-free // strides[k]) if over else free // strides[k]
        if last * strides[k] >= n + pads[k]:
            return None  # ONNX's shape inference counts a window that onnxruntime leaves out
        extents.append(last + 1)
    given: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    operator = data.draw(st.sampled_from(["MaxPool", "AveragePool"]))
    if operator == "AveragePool":
        given["count_include_pad"] = data.draw(st.integers(0, 1))
    y = chain.model.node(operator, chain.tensor, **given, ceil_mode=over)
    return quantize(data, chain.then(y, (*chain.shape[:2], *extents)))


def pad(data: Any, chain: Chain) -> Chain | None:
    """Zeros, another number, or what lies near the edges; some taken off."""
    mode = data.draw(st.sampled_from(["constant", "edge", "reflect"]))
    rank = len(chain.shape)
    least = [-1 if mode == "constant" and n > 2 else 0 for n in chain.shape]
    most = [min(2, n - 1) if mode == "reflect" else 2 for n in chain.shape]
    before, after = (
        [data.draw(st.integers(least[k], most[k])) if k else 0 for k in range(rank)]
        for _ in range(2)
    )
    inputs = [chain.tensor, chain.ints([*before, *after])]
    if mode == "constant" and data.draw(st.booleans()):
        inputs.append(chain.model.constant(data.draw(st.floats(-1, 1, width=32))))
    y = chain.model.node("Pad", *inputs, mode=mode)
    extents = [b + n + a for b, n, a in zip(before, chain.shape, after, strict=True)]
    return chain.then(y, extents, chain.reach + 1)


def join(data: Any, chain: Chain) -> Chain | None:
    """With itself quantized in another way, or with a constant, before or behind."""
    axis = data.draw(st.integers(0, len(chain.shape) - 1))
    if not chain.quantized:
        return None
    if data.draw(st.booleans()):
        other = quantize(data, chain.then(chain.model.node("Neg", chain.tensor), chain.shape))
        tensor, extent = other.tensor, chain.shape[axis]
    else:
        extent = data.draw(small)
        extents = [extent if k == axis else n for k, n in enumerate(chain.shape)]
        tensor = chain.model.constant(np.random.default_rng(extent).normal(size=extents))
    parts = [chain.tensor, tensor]
    y = chain.model.node("Concat", *(parts if data.draw(st.booleans()) else parts[::-1]), axis=axis)
    extents = [n + extent * (k == axis) for k, n in enumerate(chain.shape)]
    return chain.then(y, extents, chain.reach * 1.2 + 1)


def split(data: Any, chain: Chain) -> Chain | None:
    """Cut along an axis, and one part chosen or both added."""
    axis = data.draw(st.integers(0, len(chain.shape) - 1))
    extent = chain.shape[axis]
    if extent < 2:
        return None
    first = data.draw(st.integers(1, extent - 1))
    names = [f"part_{len(chain.model.nodes)}_{k}" for k in range(2)]
    sizes = chain.ints([first, extent - first])
    chain.model.nodes.append(
        helper.make_node("Split", [chain.tensor, sizes], names, name=names[0], axis=axis)
    )
    extents = [first if k == axis else n for k, n in enumerate(chain.shape)]
    if 2 * first == extent and data.draw(st.booleans()):
        return chain.then(chain.model.node("Add", *names), extents, 2 * chain.reach)
    return chain.then(names[0], extents)


def choose(data: Any, chain: Chain) -> Chain | None:
    """Some places of an axis, in any order, or evenly spaced ones."""
    axis = data.draw(st.integers(0, len(chain.shape) - 1))
    extent = chain.shape[axis]
    if data.draw(st.booleans()):
        places = data.draw(st.lists(st.integers(-extent, extent - 1), min_size=1, max_size=5))
        y = chain.model.node("Gather", chain.tensor, chain.ints(places), axis=axis)
        count = len(places)
    else:
        cut = data.draw(st.slices(extent).filter(lambda cut: len(range(extent)[cut])))
        found = range(extent)[cut]
        end = found[-1] + found.step
        end = -extent - 1 if end < 0 else end
        bounds = [chain.ints([n]) for n in (found[0], end, axis, found.step)]
        y = chain.model.node("Slice", chain.tensor, *bounds)
        count = len(found)
    return chain.then(y, [count if k == axis else n for k, n in enumerate(chain.shape)])


def turn(data: Any, chain: Chain) -> Chain | None:
    """Axes in another order, the batch in its place."""
    order = [0, *data.draw(st.permutations(range(1, len(chain.shape))))]
    y = chain.model.node("Transpose", chain.tensor, perm=order)
    return chain.then(y, [chain.shape[k] for k in order])


def reshape(data: Any, chain: Chain) -> Chain | None:
    """Two axes become one, one becomes two, or all but the batch one."""
    rank = len(chain.shape)
    way = data.draw(st.sampled_from(["merge", "part", "flatten"]))
    shape = list(chain.shape)
    if way == "merge" and rank > 2:
        axis = data.draw(st.integers(1, rank - 2))
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    elif way == "part" and rank < 4:
        axis = data.draw(st.integers(1, rank - 1))
        divisors = [d for d in range(1, shape[axis] + 1) if shape[axis] % d == 0]
        divisor = data.draw(st.sampled_from(divisors))
        shape[axis : axis + 1] = [divisor, shape[axis] // divisor]
    else:
        shape = [1, prod(shape)]
    written = [-1, *shape[1:]] if data.draw(st.booleans()) else shape
    return chain.then(chain.model.node("Reshape", chain.tensor, chain.ints(written)), shape)


def repeat(data: Any, chain: Chain) -> Chain | None:
    """Tile."""
    repeats = [1, *(data.draw(st.integers(1, 2)) for _ in chain.shape[1:])]
    y = chain.model.node("Tile", chain.tensor, chain.ints(repeats))
    return chain.then(y, [n * r for n, r in zip(chain.shape, repeats, strict=True)])


def reduce(data: Any, chain: Chain) -> Chain | None:
    """The sum, the mean, the largest or the smallest along an axis."""
    if len(chain.shape) < 3 or not chain.quantized:
        return None
    operator = data.draw(st.sampled_from(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"]))
    axis, keep = data.draw(st.integers(1, len(chain.shape) - 1)), data.draw(st.integers(0, 1))
    if operator == "ReduceSum":
        y = chain.model.node(operator, chain.tensor, chain.ints([axis]), keepdims=keep)
    else:
        y = chain.model.node(operator, chain.tensor, axes=[axis], keepdims=keep)
    extents = [1 if k == axis else n for k, n in enumerate(chain.shape) if keep or k != axis]
    reach = chain.reach * (chain.shape[axis] if operator == "ReduceSum" else 1)
    return quantize(data, chain.then(y, extents, reach))


def arithmetic(data: Any, chain: Chain) -> Chain | None:
    """With a constant for each channel, or with itself quantized in another way."""
    operator = data.draw(st.sampled_from(["Add", "Sub", "Mul"]))
    if chain.quantized and data.draw(st.booleans()):
        other = quantize(data, chain.then(chain.model.node("Neg", chain.tensor), chain.shape))
        reach = chain.reach * other.reach if operator == "Mul" else chain.reach + other.reach
        y = chain.model.node(operator, chain.tensor, other.tensor)
    else:
        constant = np.random.default_rng(chain.shape[-1]).uniform(0.3, 1.4, chain.shape[-1])
        y = chain.model.node(operator, chain.tensor, chain.model.constant(constant))
        reach = chain.reach + 1.4
    return quantize(data, chain.then(y, chain.shape, reach))


def function(data: Any, chain: Chain) -> Chain | None:
    """An activation."""
    operator = data.draw(st.sampled_from(["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Clip"]))
    if not chain.quantized:
        return None
    bounds = [chain.model.constant(n) for n in (-0.3, 0.7)] if operator == "Clip" else []
    y = chain.model.node(operator, chain.tensor, *bounds)
    reach = {"Sigmoid": 1.0, "Tanh": 1.0, "Clip": 0.7}.get(operator, chain.reach)
    return quantize(data, chain.then(y, chain.shape, reach))


def softmax(data: Any, chain: Chain) -> Chain | None:
    """Along any axis."""
    if not chain.quantized:
        return None
    axis = data.draw(st.integers(1, len(chain.shape) - 1))
    y = chain.model.node("Softmax", chain.tensor, axis=axis)
    return quantize(data, chain.then(y, chain.shape, 1.0))


def normalize(data: Any, chain: Chain) -> Chain | None:
    """LayerNormalization of the last axis."""
    width = chain.shape[-1]
    if not chain.quantized or width < 2:
        return None
    gamma, beta = random(data).uniform(0.2, 1.5, width), random(data).normal(0.0, 0.5, width)
    given = [chain.model.constant(array) for array in (gamma, beta)]
    y = chain.model.node("LayerNormalization", chain.tensor, *given, axis=-1, epsilon=1e-5)
    return quantize(data, chain.then(y, chain.shape, 5.0))


def projected(data: Any, chain: Chain, width: int) -> Chain:
    """Every token by a matrix."""
    w = chain.model.weights(integers(data, chain.shape[-1], width), steps(data, width), axis=1)
    y = chain.model.node("MatMul", chain.tensor, w)
    reach = chain.reach * chain.shape[-1] ** 0.5
    return quantize(data, chain.then(y, (*chain.shape[:-1], width), reach))


def attention(data: Any, chain: Chain) -> Chain | None:
    """Queries, keys and values of every token, and a mechanism over them."""
    if not chain.quantized or len(chain.shape) != 3 or chain.shape[0] != 1:
        return None
    model, tokens = chain.model, chain.shape[1]
    heads, d_head = data.draw(st.integers(1, 3)), data.draw(st.integers(2, 9))
    apart = chain.ints([1, tokens, heads, d_head])
    parts = [projected(data, chain, heads * d_head) for _ in range(3)]
    q, k, v = (
        model.node("Transpose", model.node("Reshape", part.tensor, apart), perm=[0, 2, 1, 3])
        for part in parts
    )
    pair = Pair(model, q, k, heads, tokens, parts[0].reach * parts[1].reach)
    weights = data.draw(st.sampled_from(MECHANISMS))(data, pair)
    context = model.node("Transpose", model.node("MatMul", weights, v), perm=[0, 2, 1, 3])
    shape = (1, tokens, heads * d_head)
    y = model.node("Reshape", context, chain.ints(shape))
    # wide enough for every value: behind it may come a quantizer to which the device goes at once
    scale, zero = parts[2].reach / 100, data.draw(st.integers(-25, 25))
    return chain.then(model.quantized(y, scale, zero), shape, scale * 256, quantized=True)


# What has kernels of its own is drawn more often.
STEPS: tuple[Step, ...] = (
    *(convolution, product) * 2,
    *(attention,) * 3,
    *(with_itself, pool, pad, join, split, choose, softmax, normalize),
    *(turn, reshape, repeat, reduce, arithmetic, function),
)
