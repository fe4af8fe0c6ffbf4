"""What a layer requantizes: integer tensors alone, of a quantity with anything in it."""

from __future__ import annotations

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Node, Value
from entrain.deploy.lowering.integers import PART_BITS, in_integers
from entrain.deploy.lowering.quantity import Affine, Quantity

INTEGER_TYPES = ("int8", "uint8", "int16", "int32", "int64")


def affine_of(quantity: Quantity, value: Value) -> Affine:
    """The quantity in integer tensors alone, precise enough for the steps of ``value``.

    Raises:
        UnsupportedOperator: it may grow without bound where something but the value clips it.
    """
    low, high = integer_range(value.dtype)
    ends = (value.scale * (low - 1 - value.zero_point), value.scale * (high + 1 - value.zero_point))
    return in_integers(quantity, PART_BITS, max(map(abs, ends)))


def check_integer(expression: Node) -> None:
    """No node of a layer holds floating point.

    Raises:
        UnsupportedOperator: one does; that is a fault of the lowering.
    """
    for node in expression.walk():
        if node.dtype not in INTEGER_TYPES:
            raise UnsupportedOperator(
                f"{type(node.operator).__name__} left {node.dtype} in the inference path",
                remedy="this is a fault of the lowering; please report it with the model",
            )
