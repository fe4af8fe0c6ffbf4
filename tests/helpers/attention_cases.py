"""Queries, keys and values of every size, place and type, for the tests of attention kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.lowering.graph import Layer, Node, Value
from entrain.deploy.lowering.operators.linear_attention import linear_attention
from entrain.deploy.lowering.operators.softmax_attention import softmax_attention
from entrain.deploy.lowering.views import View

KINDS = ("random", "equal", "saturated", "dominant", "few")


@dataclass(frozen=True)
class Case:
    """Three views, the stored integers of the values that they show, and a place for contexts."""

    query: View
    key: View
    value: View
    stored: dict[str, Any]
    output: Value
    strides: tuple[int, int, int]

    @property
    def views(self) -> tuple[View, View, View]:
        return self.query, self.key, self.value


@dataclass(frozen=True)
class Size:
    heads: int = 2
    queries: int = 7
    keys: int = 7
    d_head: int = 8
    d_value: int = 8


@dataclass(frozen=True)
class Numbers:
    """Types, steps and zero points; a zero point is a place within the type, from 0 to 1."""

    dtype: str = "int8"
    output_dtype: str = "int8"
    step: float = 0.05
    value_step: float = 0.03
    output_step: float = 0.03
    zero_points: tuple[float, float, float, float] = (0.5, 0.5, 0.5, 0.5)
    kind: str = "random"


def make_case(
    name: str, size: Size, numbers: Numbers, random: np.random.Generator, layout: str = "tokens"
) -> Case:
    """A case whose values are called by ``name``.

    Layouts: ``tokens`` [T, H, D], ``heads`` [H, T, D], or one ``packed`` tensor [T, 3, H, D] with
    a gap between tokens.
    """
    if layout == "packed":
        return _packed(name, size, numbers, random)
    rows = {"q": size.queries, "k": size.keys, "v": size.keys}
    widths = {"q": size.d_head, "k": size.d_head, "v": size.d_value}
    views, stored = [], {}
    for place, letter in enumerate("qkv"):
        tokens, width = rows[letter], widths[letter]
        integers = _integers(numbers, (size.heads, tokens, width), letter, random)
        value = _value(f"{name}_{letter}", size.heads * tokens * width, numbers, place)
        strides = _strides(layout, size.heads, tokens, width)
        views.append(View(value, value.zero_point, 0, strides, integers.shape))
        ordered = integers if layout == "heads" else integers.transpose(1, 0, 2)
        stored[value.name] = np.ascontiguousarray(ordered).reshape(value.shape)
    return Case(*views, stored, *_output(name, size, numbers, layout))


def _packed(name: str, size: Size, numbers: Numbers, random: np.random.Generator) -> Case:
    width = size.heads * size.d_head
    token = 3 * width + 5
    value = _value(f"{name}_qkv", size.keys * token, numbers, 0)
    flat = _integers(numbers, (size.keys * token,), "q", random)
    shape = (size.heads, size.keys, size.d_head)
    views = [
        View(value, value.zero_point, part * width, (size.d_head, token, 1), shape)
        for part in range(3)
    ]
    same = Size(size.heads, size.keys, size.keys, size.d_head, size.d_head)
    return Case(*views, {value.name: flat}, *_output(name, same, numbers, "tokens"))


def _value(name: str, count: int, numbers: Numbers, place: int) -> Value:
    step = numbers.value_step if name.endswith("_v") else numbers.step
    zero_point = _zero_point(numbers.dtype, numbers.zero_points[place])
    return Value(name, (count,), numbers.dtype, step, zero_point, name)


def _output(
    name: str, size: Size, numbers: Numbers, layout: str
) -> tuple[Value, tuple[int, int, int]]:
    count = size.heads * size.queries * size.d_value
    zero_point = _zero_point(numbers.output_dtype, numbers.zero_points[3])
    value = Value(
        f"{name}_out", (count,), numbers.output_dtype, numbers.output_step, zero_point, name
    )
    return value, _strides(layout, size.heads, size.queries, size.d_value)


def _zero_point(dtype: str, place: float) -> int:
    low, high = integer_range(dtype)
    return round(low + place * (high - low + 1) - 0.5) if place < 1.0 else high


def _strides(layout: str, heads: int, tokens: int, width: int) -> tuple[int, int, int]:
    return (tokens * width, width, 1) if layout == "heads" else (width, heads * width, 1)


def _integers(
    numbers: Numbers, shape: tuple[int, ...], letter: str, random: np.random.Generator
) -> Any:
    low, high = integer_range(numbers.dtype)
    drawn = random.integers(low, high, shape, numbers.dtype, endpoint=True)
    match numbers.kind:
        case "equal":
            return np.full(shape, drawn.flat[0], numbers.dtype)
        case "saturated":
            return random.choice(np.asarray([low, high], numbers.dtype), shape)
        case "dominant" if letter == "k" and len(shape) == 3:
            middle = (low + high) // 2
            weak = np.full(shape, middle, numbers.dtype)
            weak[:, -1] = high
            return weak
        case "few":
            return random.choice(np.asarray([low, drawn.flat[0], high], numbers.dtype), shape)
    return drawn


def random_case(name: str, random: np.random.Generator, farthest: float = 160.0) -> Case:
    """Any size, layout, type and kind of integers; scores over sqrt(d_head) up to ``farthest``."""
    queries, keys = (int(n) for n in random.integers(1, 41, 2))
    d_head, d_value = (int(n) for n in random.integers(1, 37, 2))
    size = Size(int(random.integers(1, 4)), queries, keys, d_head, d_value)
    dtype, output_dtype = (str(t) for t in random.choice(["int8", "uint8"], 2))
    places = tuple(float(p) for p in random.choice([0.0, 0.3, 0.5, 0.5, 0.8, 1.0], 4))
    numbers = Numbers(
        dtype,
        output_dtype,
        step=float((farthest * 10.0 ** random.uniform(-3.0, 0.0)) ** 0.5 / d_head**0.25 / 255),
        output_step=float(random.uniform(0.01, 0.06)),
        zero_points=places,
        kind=str(random.choice(KINDS)),
    )
    layout = str(random.choice(["tokens", "heads", "packed"]))
    return make_case(name, size, numbers, random, layout)


def reals(view: View, stored: dict[str, Any]) -> Any:
    """What a view shows, as reals: [heads, tokens, channels] in double precision."""
    places = sum(
        (
            np.arange(extent).reshape([-1 if axis == k else 1 for k in range(3)]) * stride
            for axis, (extent, stride) in enumerate(zip(view.shape, view.strides, strict=True))
        ),
        start=np.full(view.shape, view.offset),
    )
    flat = stored[view.value.name].reshape(-1).astype(np.float64)
    return (flat[places] - view.zero_point) * view.value.scale


def contexts(case: Case, written: Any) -> Any:
    """The reals that an output holds, and which of them are clipped: [heads, queries, channels]."""
    heads, queries, _ = case.query.shape
    shape = (heads, queries, case.value.shape[2])
    value = case.output
    view = View(value, value.zero_point, 0, case.strides, shape)
    return reals(view, {value.name: written})


def clipped(case: Case, exact: Any) -> Any:
    """Real contexts, clipped to what the output can hold."""
    low, high = (
        (end - case.output.zero_point) * case.output.scale
        for end in integer_range(case.output.dtype)
    )
    return np.clip(exact, low, high)


def softmax_of(case: Case, score_scale: float | None = None, **options: Any) -> Node:
    """Softmax attention of a case, scores over sqrt(d_head)."""
    scale = case.query.shape[2] ** -0.5 if score_scale is None else score_scale
    place = {"output": case.output, "output_strides": case.strides}
    return softmax_attention(*case.views, score_scale=scale, **place, **options)


def linear_of(case: Case, feature: str = "relu", epsilon: float = 1 / 64) -> Node:
    """Linear attention of a case."""
    place = {"output": case.output, "output_strides": case.strides}
    return linear_attention(*case.views, feature=feature, epsilon=epsilon, **place)


def layer_of(case: Case, mechanism: Callable[..., Node], **options: Any) -> Layer:
    """A layer of a case and what makes its node, called as its output."""
    inputs = {view.value.name: view.value for view in case.views}
    node = mechanism(case, **options)
    return Layer(case.output.name, "attention", tuple(inputs.values()), case.output, node)
