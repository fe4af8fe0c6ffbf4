"""One operator a file: its shape rule, its numpy reference and its TensorIR.

:func:`apply` makes a node of an operator, and folds it at once when every operand is a constant.
"""

from __future__ import annotations

from entrain.deploy.lowering.graph import Node, Operator
from entrain.deploy.lowering.operators.leaves import Constant, constant

__all__ = ["apply", "constant"]


def apply(operator: Operator, *operands: Node) -> Node:
    """The node ``operator(*operands)``; a constant when all operands are."""
    shape, dtype = operator.result(*operands)
    if all(isinstance(node.operator, Constant) for node in operands):
        arrays = [node.operator.reference() for node in operands]
        return constant(operator.reference(*arrays).astype(dtype).reshape(shape))
    return Node(operator, operands, shape, dtype, operator.interval(*operands))
