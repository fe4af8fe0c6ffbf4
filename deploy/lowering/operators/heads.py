"""Queries, keys, values and contexts of several heads, where they lie in stored values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Array, Interval, Node, Shape, Value
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.views import View

Strides = tuple[int, int, int]  # of head, token and channel
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class AttentionOperator:
    """What every attention as one operator has; it is only ever emitted as a kernel.

    Attributes:
        query: [heads, queries, d_head].
        key: [heads, keys, d_head].
        value: [heads, keys, d_value].
        shape: of the result.
        dtype: of the result.
        strides: of head, token and channel in the result.
        zero_point: of the result, which is clipped to its type.
    """

    query: View
    key: View
    value: View
    shape: Shape
    dtype: str
    strides: Strides
    zero_point: int

    def result(self, *_operands: Node) -> tuple[Shape, str]:
        """As the value that it writes."""
        return self.shape, self.dtype

    def interval(self, *_operands: Node) -> Interval:
        """The type's range."""
        return integer_range(self.dtype)

    def written(self, context: Integers) -> Array:
        """The value that holds contexts [heads, queries, d_value], in steps from its zero."""
        clipped = np.clip(context + self.zero_point, *integer_range(self.dtype))
        return arranged(clipped, self.strides, self.shape, self.dtype)

    @property
    def compute(self) -> Callable[..., Any]:
        """There is no TensorIR of it."""
        raise LookupError(f"{type(self).__name__} is only emitted as a kernel")


def elements(view: View, stored: Array) -> Array:
    """What a view shows, as stored: [heads, tokens, channels]."""
    return stored.reshape(-1)[_places(view.shape, view.strides, view.offset)]


def integers(view: View, stored: Array) -> Integers:
    """What a view shows, zero point taken off: [heads, tokens, channels]."""
    return elements(view, stored).astype(np.int64) - view.zero_point


def reach(view: View) -> int:
    """The largest magnitude that an element of a view can have."""
    low, high = integer_range(view.value.dtype)
    return max(abs(low - view.zero_point), abs(high - view.zero_point))


def arranged(context: Integers, strides: Strides, shape: Shape, dtype: str) -> Array:
    """A value of ``shape`` that holds contexts [heads, tokens, channels] at these strides."""
    flat = np.zeros(context.size, dtype)
    flat[_places(context.shape, strides, 0)] = context
    return flat.reshape(shape)


def check_heads(query: View, key: View, value: View, output: Value, strides: Strides) -> None:
    """Whether kernels can read and write these.

    Raises:
        UnsupportedOperator: channels do not lie side by side, shapes do not belong together, or
            contexts do not fill the output.
    """
    heads, queries, d_head = query.shape
    context = (heads, queries, value.shape[2])
    if key.shape != (heads, value.shape[1], d_head) or value.shape[0] != heads:
        raise UnsupportedOperator(
            f"attention over queries {query.shape}, keys {key.shape} and values {value.shape}"
        )
    if any(view.shape[2] > 1 and view.strides[2] != 1 for view in (query, key, value)) or (
        context[2] > 1 and strides[2] != 1
    ):
        raise UnsupportedOperator(
            "attention whose channels do not lie side by side",
            remedy="transpose heads and tokens, not the channels",
        )
    places = np.sort(_places(context, strides, 0), axis=None)
    if not np.array_equal(places, np.arange(output.size)):
        raise UnsupportedOperator(f"attention that does not fill its output {output.shape}")


def loads(*views: View) -> tuple[Node, ...]:
    """A node that reads each view's value; one node for one value."""
    nodes = {view.value.name: load(view.value) for view in views}
    return tuple(nodes[view.value.name] for view in views)


def _places(shape: Shape, strides: tuple[int, ...], offset: int) -> Integers:
    index = np.indices(shape, dtype=np.int64)
    steps = np.asarray(strides, np.int64).reshape(-1, *(1 for _ in shape))
    places: Integers = offset + (index * steps).sum(axis=0)
    return places
