"""Moves: they compute nothing and cost nothing but index arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from entrain.deploy.lowering.graph import Node
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.layout import Broadcast, Reshape, permuted
from entrain.deploy.lowering.quantity import Quantity, rearrange
from entrain.deploy.lowering.translations.contract import Translation, integers, result_shape


def reshape(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Reshape, squeeze, unsqueeze and flatten alike."""
    shape = result_shape(call)

    def move(node: Node) -> Node:
        return node if node.shape == shape else apply(Reshape(shape), node)

    return rearrange(operands[0], move, shape)


def permute(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Transpose."""
    axes = call.attrs.axes
    rank = len(operands[0].shape)
    order = tuple(reversed(range(rank))) if axes is None else integers(axes)
    return rearrange(operands[0], lambda node: permuted(node, order), result_shape(call))


def broadcast(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Expand."""
    shape = result_shape(call)
    return rearrange(operands[0], lambda node: apply(Broadcast(shape), node), shape)


def tile(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Each axis repeated as a whole: broadcast along a new axis before it."""
    (quantity,) = operands
    shape = result_shape(call)
    repeats = [new // old for new, old in zip(shape, quantity.shape, strict=True)]
    split = tuple(n for extent in quantity.shape for n in (1, extent))
    spread = tuple(n for pair in zip(repeats, quantity.shape, strict=True) for n in pair)

    def move(node: Node) -> Node:
        return apply(Reshape(shape), apply(Broadcast(spread), apply(Reshape(split), node)))

    return rearrange(quantity, move, shape)


TRANSLATIONS: dict[str, Translation] = {
    "relax.reshape": reshape,
    "relax.squeeze": reshape,
    "relax.expand_dims": reshape,
    "relax.flatten": reshape,
    "relax.permute_dims": permute,
    "relax.broadcast_to": broadcast,
    "tile": tile,
}
ONNX_OPERATORS = {
    *("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand", "Tile"),
    *("DepthToSpace", "SpaceToDepth"),
}
