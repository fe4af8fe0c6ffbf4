"""What generated loops may overwrite: values of which each output element needs its own place."""

from __future__ import annotations

from functools import reduce

import numpy as np

from entrain.deploy.lowering.graph import Array, Layer, Node, Value
from entrain.deploy.lowering.operators.elementwise import Elementwise
from entrain.deploy.lowering.operators.leaves import Load
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.operators.quantizers import Narrow, Requantize
from entrain.deploy.lowering.views import MOVES

# An element of the result depends on that element of each operand alone; operands broadcast.
ELEMENT_BY_ELEMENT = (Elementwise, Narrow, Requantize)

# Instead of the place in a value that an element depends on.
NOWHERE = -1
SEVERAL = -2


def overwritable(layer: Layer) -> tuple[str, ...]:
    """The names of the values whose bytes generated loops may overwrite as they go.

    An element of the output then depends on the element of that value at the same address and on
    no other; what it makes of other values is free. Whether the value is needed afterwards is the
    planner's question.
    """
    return tuple(value.name for value in layer.inputs if _may_overwrite(layer, value))


def _may_overwrite(layer: Layer, value: Value) -> bool:
    itemsizes = {np.dtype(each.dtype).itemsize for each in (value, layer.output)}
    if value.size != layer.output.size or len(itemsizes) > 1:
        return False
    places: dict[int, Array] = {}
    for node in layer.expression.walk():
        operands = [places[id(operand)] for operand in node.operands]
        places[id(node)] = _places(node, operands, value)
    needed = places[id(layer.expression)].ravel()
    return bool(((needed == np.arange(value.size)) | (needed == NOWHERE)).all())


def _places(node: Node, operands: list[Array], value: Value) -> Array:
    """For each element of the node, the place in ``value`` that it depends on."""
    if isinstance(node.operator, Load) and node.operator.value == value:
        return np.arange(value.size).reshape(value.shape)
    if all((operand == NOWHERE).all() for operand in operands):
        return np.broadcast_to(NOWHERE, node.shape)
    if isinstance(node.operator, MOVES):
        return node.operator.reference(operands[0])
    if isinstance(node.operator, ELEMENT_BY_ELEMENT):
        return np.broadcast_to(reduce(_together, operands), node.shape)
    if isinstance(node.operator, Lookup) and (operands[1] == NOWHERE).all():
        return operands[0]
    return np.broadcast_to(SEVERAL, node.shape)


def _together(a: Array, b: Array) -> Array:
    agreed = np.where(a == b, a, SEVERAL)
    return np.where(b == NOWHERE, a, np.where(a == NOWHERE, b, agreed))
