"""Normalized rows of stored bytes as calls of ``entrain_layer_norm``.

LayerNormalization, RMSNormalization and vectors drawn to length 1, wherever a row lies in one piece
and is requantized at once. Factors and biases may differ from column to column.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from entrain.deploy.lowering.composites.unit import FINER, FRACTION
from entrain.deploy.lowering.graph import BYTES, Array, Layer, Node, Shape
from entrain.deploy.lowering.kernels.bytes_in_order import bytes_in_order
from entrain.deploy.lowering.kernels.c_source import source_of, structure
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.operators.elementwise import MULTIPLY_INTEGERS, SUBTRACT_INTEGERS
from entrain.deploy.lowering.operators.leaves import Constant
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.operators.ratio import RootFactor, Scaled
from entrain.deploy.lowering.operators.reduction import Sum, SumOfSquares
from entrain.deploy.lowering.views import View, result_places

LEAST_SHIFT, LARGEST_SHIFT = 33, 54  # between them only the high word of a total matters
MOST_COLUMNS = 2**15  # of which the squares of bytes fit 31 bits
LONGEST = 2**FRACTION + 1  # a component, with what the inverse root is off


@dataclass(frozen=True)
class Rows:
    """``factor * (count * x - sum x)``, centred, or ``factor * (x - zero_point)``; by rows."""

    view: View
    columns: int
    centred: bool
    factor: int
    tiny: int


def match_layer_norm(layer: Layer) -> Kernel | None:
    """The kernel of a layer that normalizes rows of bytes; None for anything else."""
    to = layer.expression.operator
    if not isinstance(to, Requantize) or to.dtype not in BYTES or to.terms != 1:
        return None
    if not LEAST_SHIFT <= to.shift <= LARGEST_SHIFT:
        return None
    unit, multipliers, bias = layer.expression.operands
    rows = _rows(unit)
    if rows is None or prod(rows.view.shape) != prod(to.shape):
        return None
    fine = bias.operator.reference().astype(np.int64) << np.int64(to.bias_shift)
    offsets = _of_columns(fine, to.shape, rows.columns)
    factors = _of_columns(multipliers.operator.reference(), to.shape, rows.columns)
    if offsets is None or factors is None:
        return None
    return _kernel(layer, to, rows, factors, offsets + (to.zero_point << to.shift) + _half(to))


def _half(to: Requantize) -> int:
    return 1 << (to.shift - 1)


def _rows(unit: Node) -> Rows | None:
    """What a node draws to length 1, if that is each row of stored bytes."""
    scaled = _in_order(unit)
    if scaled is None or not isinstance(scaled.operator, Scaled):
        return None
    vector, root = scaled.operands
    if not isinstance(root.operator, RootFactor) or scaled.operator.fraction != FRACTION:
        return None
    (squares,) = root.operands
    if not isinstance(squares.operator, SumOfSquares) or squares.operands[0] is not vector:
        return None
    axes, tiny = squares.operator.axes, root.operator.tiny
    columns = _columns(vector.shape, axes)
    factor, moved = _multiple(vector)
    if columns is None or factor > 2**FINER or scaled.operator.limit < LONGEST:
        return None
    source = _centred(moved, axes, columns)
    view = bytes_in_order(moved if source is None else source)
    return None if view is None else Rows(view, columns, source is not None, factor, tiny)


def _centred(node: Node, axes: tuple[int, ...], columns: int) -> Node | None:
    """``x`` of ``columns * x - sum x``."""
    if node.operator is not SUBTRACT_INTEGERS:
        return None
    multiple, total = node.operands
    count, source = _multiple(multiple)
    summed = total.operator == Sum(axes) and total.operands[0] is source
    return source if summed and count == columns else None


def _multiple(node: Node) -> tuple[int, Node]:
    """The factor and x of ``factor * x``; 1 and the node itself if it is none."""
    if node.operator is MULTIPLY_INTEGERS and isinstance(node.operands[1].operator, Constant):
        array = node.operands[1].operator.array
        if array.size == 1 and array.item() > 0:
            return int(array.item()), node.operands[0]
    return 1, node


def _columns(shape: Shape, axes: tuple[int, ...]) -> int | None:
    """How many elements a row has, if rows are all the last axes; None if they are not."""
    columns = prod(shape[axis] for axis in axes)
    return columns if columns == prod(shape[min(axes) :]) and columns <= MOST_COLUMNS else None


def _in_order(node: Node) -> Node | None:
    """The node below moves that leave every element where it is."""
    source, places = result_places(node)
    return source if np.array_equal(places.ravel(), np.arange(prod(source.shape))) else None


def _of_columns(array: Array, shape: Shape, columns: int) -> Array | None:
    """A number for each column; None if rows differ."""
    rows = np.broadcast_to(array, shape).reshape(-1, columns)
    return rows[0].astype(np.int64) if (rows == rows[0]).all() else None


def _kernel(layer: Layer, to: Requantize, rows: Rows, multipliers: Array, offsets: Array) -> Kernel:
    high, low = offsets >> 32, offsets & 0xFFFFFFFF
    alike = np.unique(multipliers).size == 1 and np.unique(offsets).size == 1 and not low.any()
    fields = {
        "rows": prod(to.shape) // rows.columns,
        "columns": rows.columns,
        "centred": rows.centred,
        "zero_point": rows.view.zero_point,
        "factor": rows.factor,
        "tiny": rows.tiny,
        "is_unsigned": rows.view.value.dtype == "uint8",
        "for_each_column": not alike,
        "multiplier": int(multipliers[0]) if alike else 0,
        "offset": int(high[0]) if alike else 0,
        "shift": to.shift - 32,
        "low": to.low,
        "high": to.high,
        "to_unsigned": to.dtype == "uint8",
    }
    call = (
        f"static const struct entrain_layer_norm norm = {structure(fields, wide=True)};\n"
        f"entrain_layer_norm({source_of(rows.view)}, {'NULL' if alike else 'table'}, "
        "output, &norm);"
    )
    table = np.stack([multipliers, high, low.astype(np.uint32).view(np.int32)]).astype(np.int32)
    constants = () if alike else (("table", table),)
    # a byte is read for the result of its own place or of an earlier one
    overwrites = tuple(value.name for value in layer.inputs)
    return Kernel(layer, "entrain_layer_norm.h", call, constants, overwrites=overwrites)
