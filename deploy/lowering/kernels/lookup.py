"""Functions of a stored byte as calls of ``entrain_lookup``."""

from __future__ import annotations

from math import prod

import numpy as np

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.lowering.graph import BYTES, Array, Layer
from entrain.deploy.lowering.kernels.bytes_in_order import bytes_in_order
from entrain.deploy.lowering.kernels.c_source import source_of
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.operators.leaves import Constant
from entrain.deploy.lowering.operators.lookup import Lookup

ENTRIES = 256


def match_lookup(layer: Layer) -> Kernel | None:
    """The kernel of a layer that looks stored bytes up; None if they lie in another order."""
    if not isinstance(layer.expression.operator, Lookup) or layer.output.dtype not in BYTES:
        return None
    index, table = layer.expression.operands
    view = bytes_in_order(index)
    if view is None or not isinstance(table.operator, Constant) or table.shape != (ENTRIES,):
        return None
    if view.zero_point != integer_range(view.value.dtype)[0]:
        return None
    count = prod(layer.output.shape)
    call = f"entrain_lookup({source_of(view)}, table, output, {count});"
    constants = (("table", _by_bytes(table.operator.reference(), view.value.dtype)),)
    # a byte is read for the result of its own place or of an earlier one
    overwrites = tuple(value.name for value in layer.inputs)
    return Kernel(layer, "entrain_lookup.h", call, constants, overwrites=overwrites)


def _by_bytes(table: Array, dtype: str) -> Array:
    """The table's entries in the order of bytes as unsigned numbers; those of ``dtype`` index it.

    What stands for -128 to 127 follows from the sign: bytes from 128 on are the negative numbers.
    """
    return np.roll(table, integer_range(dtype)[0])
