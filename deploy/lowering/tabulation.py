"""Functions of one 8-bit tensor become a table of 256 entries.

Whatever a network does element by element between two boundaries, an 8-bit input has only 256
values: sigmoid, softplus, GELU and hard-swish alike cost one load.
"""

from __future__ import annotations

import numpy as np

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.lowering.graph import Array, Node
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import SUBTRACT_INTEGERS, Elementwise
from entrain.deploy.lowering.operators.layout import Broadcast, Permute, Reshape, Slice
from entrain.deploy.lowering.operators.leaves import Constant, Load
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.operators.quantizers import Quantize


def tabulated(expression: Node) -> Node:
    """The expression as a table look-up, if it is an element-wise function of one 8-bit value."""
    source = _only_source(expression)
    if source is None:
        return expression
    low, high = integer_range(source.dtype)
    stored = np.arange(low, high + 1).astype(source.dtype)
    results: dict[int, Array] = {id(source): stored}
    for node in expression.walk():
        if isinstance(node.operator, Constant):
            results[id(node)] = node.operator.array.reshape(())
        elif node.operands and all(id(operand) in results for operand in node.operands):
            operands = [results[id(operand)] for operand in node.operands]
            results[id(node)] = node.operator.reference(*operands)
    offset = constant(np.asarray(low, np.int32))
    index = apply(SUBTRACT_INTEGERS, source, offset)
    return apply(Lookup(), index, constant(results[id(expression)].astype(expression.dtype)))


def untabulated(expression: Node) -> bool:
    """Whether something is left that only a table could compute."""
    return any(
        isinstance(node.operator, Elementwise) and node.operator.tir_function is None
        for node in expression.walk()
    )


def _only_source(expression: Node) -> Node | None:
    """The one 8-bit node, moved about at most, that everything is an element-wise function of."""
    source: Node | None = None
    seen: set[int] = set()
    stack = [expression]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        match node.operator:
            case Elementwise() | Quantize():
                stack.extend(node.operands)
            case Constant(array):
                if array.size != 1:
                    return None
            case Load() | Permute() | Reshape() | Broadcast() | Slice():
                if not _moved_load(node) or (source is not None and source is not node):
                    return None
                source = node
            case _:
                return None
    return source if source is not None and source.shape == expression.shape else None


def _moved_load(node: Node) -> bool:
    while isinstance(node.operator, Permute | Reshape | Broadcast | Slice):
        (node,) = node.operands
    return isinstance(node.operator, Load)
