"""Integers as they are stored, below the subtraction of their zero point.

What only moves or compares integers does that to the stored bytes as well, and takes the zero point
off afterwards: the operator reads 8 bits, and a kernel may know it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from entrain.deploy.lowering.graph import Node
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import SUBTRACT_INTEGERS
from entrain.deploy.lowering.operators.leaves import Constant


def stored(node: Node) -> tuple[Node, int]:
    """The node below a subtracted number, and the number; the node itself and 0 without one."""
    if node.operator is SUBTRACT_INTEGERS:
        below, offset = node.operands
        if isinstance(offset.operator, Constant) and offset.operator.array.size == 1:
            return below, int(offset.operator.array.item())
    return node, 0


def less(node: Node, offset: int) -> Node:
    """The node minus a number; the node itself if that is 0."""
    if offset == 0:
        return node
    return apply(SUBTRACT_INTEGERS, node, constant(np.asarray(offset, np.int32)))


def below_offset(node: Node, move: Callable[[Node], Node]) -> Node:
    """``move(node)``, with the zero point taken off behind the move."""
    below, offset = stored(node)
    return less(move(below), offset)
