"""Where the elements of a moved value lie in memory: reshapes, transposes and slices as strides.

A kernel reads a value's bytes where they are. What an expression calls ``k`` may be a slice of a
packed projection, split into heads and transposed: to the kernel that is an offset and a stride an
axis, whichever operators the exporter chose to say it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrain.deploy.lowering.graph import Array, Node, Shape, Value
from entrain.deploy.lowering.operators.elementwise import SUBTRACT_INTEGERS
from entrain.deploy.lowering.operators.layout import Broadcast, Permute, Reshape, Slice
from entrain.deploy.lowering.operators.leaves import Constant, Load

MOVES = (Broadcast, Permute, Reshape, Slice)


@dataclass(frozen=True)
class View:
    """Element ``index`` is ``value[offset + sum(index * strides)] - zero_point``.

    An axis of extent 1 or a broadcast one has the stride 0.
    """

    value: Value
    zero_point: int
    offset: int
    strides: tuple[int, ...]
    shape: Shape


def view_of(node: Node) -> View | None:
    """The node as a view of one value; None if it computes, or jumps about irregularly.

    Taking off the value's zero point, before or between the moves, is part of a view.
    """
    value, zero_point, places = _places(node)
    if value is None or places is None:
        return None
    strides = strides_of(places)
    if strides is None:
        return None
    return View(value, zero_point, int(places.flat[0]), strides, node.shape)


def strides_of(places: Array) -> tuple[int, ...] | None:
    """The stride of each axis if addresses are regular along all of them, else None.

    Args:
        places: the address of each element, int64, of any shape.
    """
    strides = tuple(
        int(np.take(places, 1, axis).flat[0] - places.flat[0]) if extent > 1 else 0
        for axis, extent in enumerate(places.shape)
    )
    regular = np.full(places.shape, places.flat[0])
    for axis, stride in enumerate(strides):
        steps = np.arange(places.shape[axis]) * stride
        regular += steps.reshape((-1,) + (1,) * (places.ndim - axis - 1))
    return strides if np.array_equal(regular, places) else None


def result_places(node: Node) -> tuple[Node, Array]:
    """The node below all moves, and which of its elements (row-major) each element shows."""
    if isinstance(node.operator, MOVES):
        source, places = result_places(node.operands[0])
        return source, node.operator.reference(places)
    count = int(np.prod(node.shape, dtype=np.int64))
    return node, np.arange(count, dtype=np.int64).reshape(node.shape)


def _places(node: Node) -> tuple[Value | None, int, Array | None]:
    if isinstance(node.operator, Load):
        loaded = node.operator.value
        return loaded, 0, np.arange(loaded.size, dtype=np.int64).reshape(loaded.shape)
    if isinstance(node.operator, MOVES):
        value, zero_point, places = _places(node.operands[0])
        return value, zero_point, None if places is None else node.operator.reference(places)
    if node.operator is SUBTRACT_INTEGERS and _is_number(node.operands[1]):
        value, zero_point, places = _places(node.operands[0])
        return value, zero_point + _number(node.operands[1]), places
    return None, 0, None


def _is_number(node: Node) -> bool:
    return isinstance(node.operator, Constant) and node.operator.array.size == 1


def _number(node: Node) -> int:
    return int(node.operator.reference().item())
