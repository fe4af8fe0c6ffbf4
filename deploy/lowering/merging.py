"""Equal nodes of an expression become one, so that nothing is computed twice."""

from __future__ import annotations

from collections.abc import Hashable

from entrain.deploy.lowering.graph import Node
from entrain.deploy.lowering.operators.leaves import Constant


def merged(expression: Node) -> Node:
    """The expression with one node for all that have the same operator and operands."""
    made: dict[Hashable, Node] = {}
    found: dict[int, Node] = {}
    for node in expression.walk():
        operands = tuple(found[id(operand)] for operand in node.operands)
        key = (_key(node), tuple(map(id, operands)))
        if key not in made:
            same = all(a is b for a, b in zip(operands, node.operands, strict=True))
            made[key] = (
                node
                if same
                else Node(node.operator, operands, node.shape, node.dtype, node.interval)
            )
        found[id(node)] = made[key]
    return found[id(expression)]


def _key(node: Node) -> Hashable:
    if isinstance(node.operator, Constant):
        array = node.operator.array
        return str(array.dtype), array.shape, array.tobytes()
    return type(node.operator), node.operator
