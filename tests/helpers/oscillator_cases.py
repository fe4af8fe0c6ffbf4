"""Oscillator attention of any shape, for tests: its node, its formula in float64, its layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array, Layer, Node, Value
from entrain.deploy.lowering.operators.oscillator_attention import oscillator_attention
from entrain.deploy.lowering.views import View

SCALE = 0.05
STEP = 1 / 127
MEAN_OVER_STEP = 2.2  # of a result of random values, so that few are clipped

SCORES = {
    "relu": lambda s: np.maximum(s, 0.0),
    "softplus": lambda s: np.logaddexp(0.0, s),
    "elu": lambda s: np.maximum(s, 0.0) + np.exp(np.minimum(s, 0.0)),
    "bell": lambda s: np.exp(-s * s / 9.0),
}


@dataclass(frozen=True)
class Case:
    """Queries, keys and values side by side in one value, heads of a token together."""

    coupling: str
    heads: int = 2
    keys: int = 9
    d_head: int = 8
    d_osc: int = 2
    exponent: int = 1
    queries: int | None = None
    d_value: int | None = None
    zero_point: int = 0
    epsilon: float = 1e-3
    shared: bool = False
    apart: bool = False  # head by head instead
    output: str = "int8"
    output_zero_point: int = -3
    output_scale: float | None = None

    @property
    def shapes(self) -> tuple[tuple[int, int, int], ...]:
        """Of query, key and value: [heads, tokens, channels]."""
        queries = self.queries or self.keys
        d_value = self.d_value or self.d_head
        return (
            (self.heads, queries, self.d_head),
            (self.heads, self.keys, self.d_head),
            (self.heads, self.keys, d_value),
        )

    @property
    def size(self) -> int:
        """Of the value that holds all three."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

    @property
    def function(self) -> Callable[[Any], Any] | None:
        """The coupling as a function, if the lowering has no name for it."""
        return SCORES[self.coupling] if self.coupling == "bell" else None

    def anchors(self) -> Array:
        """Unit vectors that are no longer after rounding, from a fixed seed."""
        random = np.random.default_rng(self.d_osc)
        shape = (1 if self.shared else self.heads, self.keys, self.d_osc)
        vectors = random.standard_normal(shape)
        vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
        return np.rint(vectors * (127 - 0.5 * np.sqrt(self.d_osc))).astype(np.int8)

    def views(self, source: Value) -> list[View]:
        """Query, key and value within a value."""
        found, offset = [], 0
        for heads, tokens, channels in self.shapes:
            side_by_side = (channels, heads * channels, 1)
            strides = (tokens * channels, channels, 1) if self.apart else side_by_side
            shape = (heads, tokens, channels)
            found.append(View(source, self.zero_point, offset, strides, shape))
            offset += heads * tokens * channels
        return found

    def result(self, name: str) -> Value:
        """The value that is written, [queries, heads * d_value]."""
        heads, queries, _ = self.shapes[0]
        channels = self.shapes[2][2]
        scale = self.output_scale or SCALE * MEAN_OVER_STEP / np.sqrt(self.keys)
        shape = (queries, heads * channels)
        return Value(name, shape, self.output, scale, self.output_zero_point, name)

    def node(self, source: Value, name: str = "context", **changes: Any) -> Node:
        """The operator over a value of `size` elements or more."""
        output, (query, key, value) = self.result(name), self.views(source)
        channels = value.shape[2]
        arguments = {
            "anchors": self.anchors(),
            "anchor_scale": STEP,
            "score_scale": self.d_head**-0.5,
            "coupling": self.coupling,
            "epsilon": self.epsilon,
            "exponent": self.exponent,
            "function": self.function,
            "span": 8.0,
        }
        strides = (channels, self.heads * channels, 1)
        return oscillator_attention(
            query, key, value, output=output, output_strides=strides, **arguments | changes
        )

    def layer(self, source: Value, name: str) -> Layer:
        """A layer that computes it."""
        node = self.node(source, name)
        return Layer(name, "oscillator attention", (source,), self.result(name), node)

    def reals(self, source: Value, stored: Array) -> list[Array]:
        """Query, key and value in float64, [heads, tokens, channels]."""
        found = []
        for view in self.views(source):
            places = np.indices(view.shape).transpose(1, 2, 3, 0) @ np.asarray(view.strides)
            integers = stored.reshape(-1)[view.offset + places].astype(np.float64)
            found.append((integers - self.zero_point) * source.scale)
        return found

    def formula(self, source: Value, stored: Array) -> Array:
        """The result in float64, in its own steps, not clipped."""
        q, k, v = self.reals(source, stored)
        r = self.anchors() * STEP
        if self.coupling == "separable":
            w = np.maximum(q, 0) @ np.maximum(k, 0).transpose(0, 2, 1) * self.d_head**-0.5
        else:
            w = SCORES[self.coupling](q @ k.transpose(0, 2, 1) * self.d_head**-0.5)
        h = (w + self.epsilon) @ r
        length = np.linalg.norm(h, axis=-1, keepdims=True)
        z = np.divide(h, length, out=np.zeros_like(h), where=length > 0)
        a = np.maximum(1 + z @ r.transpose(0, 2, 1), 0) ** self.exponent
        context = a @ v / a.sum(axis=-1, keepdims=True)
        merged = context.transpose(1, 0, 2).reshape(self.result("").shape)
        return merged / self.result("").scale + self.output_zero_point


def source_of(case: Case, dtype: str = "int8") -> Value:
    """A value that holds a case's query, key and value."""
    return Value("source", (case.size,), dtype, SCALE, case.zero_point, "source")


def computed(node: Node, stored: Array) -> Array:
    """What the operator's reference makes of one stored value."""
    constants = [operand.operator.reference() for operand in node.operands[3:]]
    result: Array = node.operator.reference(stored, stored, stored, *constants)
    return result
