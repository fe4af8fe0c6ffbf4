"""Scales and zero points: as many as their axis has elements."""

from __future__ import annotations

from typing import Any

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.onnx_rewrites.editing import (
    attributes,
    constants,
    describe_node,
    shapes,
)

DEFAULT_AXIS = 1  # ONNX's own, where the attribute is missing


def check_parameters(model: Any) -> None:
    """Nothing is rewritten.

    Raises:
        UnsupportedOperator: scales in blocks, or a number of them that does not fit the axis.
    """
    arrays, known = constants(model), shapes(model)
    for node in model.graph.node:
        if node.op_type not in {"QuantizeLinear", "DequantizeLinear"}:
            continue
        given, scale = attributes(node), arrays.get(node.input[1])
        if given.get("block_size"):
            raise UnsupportedOperator(
                f"node {describe_node(node)} has a scale for each block of elements",
                remedy="quantize per tensor or per channel",
            )
        shape = known.get(node.input[0])
        if scale is None or scale.size == 1 or shape is None or len(shape) < 2:
            continue
        axis = given.get("axis", DEFAULT_AXIS)
        if scale.size != shape[axis]:
            raise UnsupportedOperator(
                f"node {describe_node(node)} has {scale.size} scales along axis {axis} of "
                f"{node.input[0]}, which has {shape[axis]} elements",
                remedy="set the node's attribute axis (without it, it is 1) to the axis of the "
                "output channels",
            )
