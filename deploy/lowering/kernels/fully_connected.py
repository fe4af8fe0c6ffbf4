"""Products with constant weights as calls of ``entrain_matmul``, a residual sum included.

Such a layer is ``clip(zero_point + round(sums * multipliers + residual * multiplier + constant))``
over sums of products of a stored value with weights. The kernel wants rows: input, result and
residual each with neighbouring elements in a row, and the same distance from row to row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from entrain.deploy.lowering.graph import BYTES, Array, Layer, Node, Value
from entrain.deploy.lowering.kernels.c_source import c_call, declared, rounded_up, structure
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.kernels.packed_weights import ProductWeights, product_weights
from entrain.deploy.lowering.kernels.rescaled_sum import (
    LARGEST_SUM,
    LEAST_SHIFT,
    UNSIGNED_OFFSET,
    RescaledSum,
    along,
    offset_of,
    rescaled_sum,
)
from entrain.deploy.lowering.kernels.steps import Touched, may_overwrite
from entrain.deploy.lowering.kernels.weights_layout import padded_depth
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.leaves import Constant
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.schedules.blocks import Candidates, MatmulShape
from entrain.deploy.lowering.views import View, view_of

LEAST_RESIDUAL_SHIFT = 2


@dataclass(frozen=True)
class PlainRows:
    """A matrix in memory: element (m, k) lies ``first + m * stride + k`` bytes behind a start."""

    first: int
    stride: int

    def places(self, rows: int, columns: int) -> Array:
        """Where its elements lie."""
        return self.first + self.stride * np.arange(rows)[:, None] + np.arange(columns)


@dataclass(frozen=True)
class Residual:
    """What joins the sums before they are rounded, in the shape of the result."""

    view: View
    multiplier: int
    constant: int  # of everything, the residual's zero point included


@dataclass(frozen=True)
class Product:
    """Rows of a stored value times constant weights.

    Attributes:
        view: the value that is read.
        input: its rows.
        weights: of shape (columns, depth).
        transposed: whether the node's last two axes are (columns, rows).
    """

    view: View
    input: PlainRows
    weights: Array
    transposed: bool

    def matrix(self, array: Array) -> Array:
        """An array of the node's shape as (rows, columns)."""
        ordered = np.swapaxes(array, -1, -2) if self.transposed else array
        return ordered.reshape(-1, self.weights.shape[0])


def match_fully_connected(layer: Layer) -> Kernel | None:
    """The kernel of a layer that is a product with weights, or one joined by a residual."""
    requantize = layer.expression.operator
    if not isinstance(requantize, Requantize) or requantize.terms > 2:
        return None
    terms = layer.expression.operands[: requantize.terms]
    for place in range(requantize.terms):
        found = rescaled_sum(_alone(layer, place))
        product = None if found is None else _product(found.sum)
        if found is None or product is None:
            continue
        if requantize.terms == 1:
            return _kernel(layer, found, product, None)
        residual = _residual(layer, terms[1 - place], 1 - place)
        return None if residual is None else _kernel(layer, found, product, residual)
    return None


def _alone(layer: Layer, place: int) -> Layer:
    """The layer with one of its terms only, and nothing added."""
    requantize, operands = layer.expression.operator, layer.expression.operands
    assert isinstance(requantize, Requantize)
    if requantize.terms == 1:
        return layer
    sums, multipliers = operands[place], operands[requantize.terms + place]
    one = replace(requantize, terms=1)
    none = constant(np.zeros((), np.int32))
    return replace(layer, expression=apply(one, sums, multipliers, none))


def _product(node: Node) -> Product | None:
    """A node as a product with weights on either side."""
    if not isinstance(node.operator, MatMul):
        return None
    left, right = node.operands
    if isinstance(right.operator, Constant):
        return _with_weights(left, right, transposed=False)
    if isinstance(left.operator, Constant):
        return _with_weights(right, left, transposed=True)
    return None


def _with_weights(operand: Node, weights: Node, *, transposed: bool) -> Product | None:
    array = weights.operator.reference()
    view = view_of(operand)
    if view is None or view.value.dtype not in BYTES:
        return None
    if array.size != np.prod(array.shape[-2:]) or array.min() < -128 or array.max() > 127:
        return None
    rows = plain_rows(_addresses(view).reshape(-1, view.shape[-1]))
    if rows is None:
        return None
    matrix = array.reshape(array.shape[-2:]).astype(np.int64)
    return Product(view, rows, matrix, transposed)


def _addresses(view: View) -> Array:
    """The place of every element of a view in its value."""
    steps = np.ogrid[tuple(slice(extent) for extent in view.shape)]
    places = sum(step * stride for step, stride in zip(steps, view.strides, strict=True))
    return np.broadcast_to(view.offset + places, view.shape)


def plain_rows(addresses: Array) -> PlainRows | None:
    """The rows that a matrix of addresses is; None if it is irregular."""
    rows, columns = addresses.shape
    first = int(addresses[0, 0])
    stride = int(addresses[1, 0]) - first if rows > 1 else columns
    regular = PlainRows(first, stride)
    return regular if np.array_equal(regular.places(rows, columns), addresses) else None


def _residual(layer: Layer, node: Node, place: int) -> Residual | None:
    """The other term, and all that is added; None if it is more than one stored value."""
    requantize, operands = layer.expression.operator, layer.expression.operands
    assert isinstance(requantize, Requantize)
    multipliers, rest = (operands[k].operator.reference() for k in (2 + place, 4))
    view = view_of(node)
    uniform = np.unique(multipliers).size == 1 and np.unique(rest).size == 1
    if view is None or not uniform or requantize.shift < LEAST_RESIDUAL_SHIFT:
        return None
    if view.shape != requantize.shape or view.value.dtype not in BYTES:
        return None
    multiplier = int(multipliers.flat[0])
    added = int(rest.flat[0]) << requantize.bias_shift
    return Residual(view, multiplier, added - view.zero_point * multiplier)


def _kernel(
    layer: Layer, found: RescaledSum, product: Product, residual: Residual | None
) -> Kernel | None:
    result = plain_rows(product.matrix(found.places))
    multipliers = along(1, product.matrix(found.multipliers))
    bias = _folded_bias(found, product)
    joined = _joined(found, product, residual)
    if result is None or multipliers is None or bias is None or (residual and joined is None):
        return None
    shape = _shape(product, found, residual is not None)
    weights = product_weights(product.weights)
    blocks = weights.blocks(shape)
    fields = {
        "rows": shape.rows,
        "depth": shape.depth,
        "columns": weights.columns,
        "input_stride": product.input.stride,
        "output_stride": result.stride,
        "bias_stride": shape.columns if bias.ndim == 2 else 0,
        "input_is_unsigned": product.view.value.dtype == "uint8",
        "block_rows": f"{layer.name.upper()}_ROWS",
        "block_columns": f"{layer.name.upper()}_COLUMNS",
        "rescale": found.rescale_text(found.requantize.shift),
        **({} if joined is None else {"residual": joined[1]}),
    }
    operands = (
        f"{product.view.value.name}_in + {product.input.first}",
        weights.operand,
        weights.columns_of("bias"),
        weights.columns_of("multipliers") if found.for_each_channel else "multipliers",
        "NULL" if joined is None else weights.columns_of(joined[0]),
        weights.scratch,
        weights.columns_of(f"output + {result.first}"),
    )
    needed = multipliers if found.for_each_channel else multipliers[:1]
    shared, declaration = declared(needed.astype(np.int32))
    apart, in_place = (
        declaration
        + weights.called(
            c_call("entrain_matmul", operands, structure({**fields, **more}, wide=True))
        )
        for more in ({}, {"is_in_place": True})
    )
    return Kernel(
        layer,
        "entrain_matmul.h",
        apart,
        (weights.constant, ("bias", bias), *shared),
        weights.scratch_bytes + _scratch_bytes(shape, blocks),
        blocks,
        tuple(v.name for v in layer.inputs if _may_overwrite(v, product, residual, found, weights)),
        ((product.view.value.name, in_place),),
    )


def _scratch_bytes(shape: MatmulShape, blocks: Candidates) -> int:
    """For DSP a block of rows in 16 bits: enough for one of bytes, wherever others copy theirs."""
    rows = max(block.rows for block in dict(blocks)["dsp"])
    return rounded_up(2 * rows * padded_depth(shape.depth), 8)


def _may_overwrite(
    value: Value,
    product: Product,
    residual: Residual | None,
    found: RescaledSum,
    weights: ProductWeights,
) -> bool:
    """Whether the result may take a value's bytes: row by row, the residual's byte by byte.

    What several calls read they may not overwrite.
    """
    written = product.matrix(found.places)
    steps = np.arange(len(written))[:, None]
    if residual is not None and residual.view.value == value:
        added = _addresses(residual.view).reshape(-1)[written]
        if not np.array_equal(added, written) or weights.overlaps:
            return False
    if product.view.value != value:
        return True
    if weights.calls > 1:
        return False
    read = product.input.places(len(written), product.weights.shape[1])
    return may_overwrite(value, Touched(read, steps), Touched(written, steps))


def _shape(product: Product, found: RescaledSum, joins: bool) -> MatmulShape:
    columns, depth = product.weights.shape
    wide = joins or found.requantize.shift < LEAST_SHIFT
    return MatmulShape(found.places.size // columns, depth, columns, wide)


def _folded_bias(found: RescaledSum, product: Product) -> Array | None:
    """The bias with the input's offset taken off, int32, for each column or each element.

    None if sums of the stored bytes might leave 32 bits.
    """
    added = product.matrix(found.bias)
    shared = along(1, added)
    bias = added if shared is None else shared
    folded = bias - offset_of(product.view) * product.weights.sum(axis=1)
    reach = np.abs(folded) + UNSIGNED_OFFSET * np.abs(product.weights).sum(axis=1)
    return None if reach.max() > LARGEST_SUM else folded.astype(np.int32)


def _joined(
    found: RescaledSum, product: Product, residual: Residual | None
) -> tuple[str, str] | None:
    """C of where the residual begins, and ``struct entrain_residual``; None without one.

    None too if its rows are not plain.
    """
    if residual is None:
        return None
    addresses = _addresses(residual.view).reshape(-1)[product.matrix(found.places)]
    rows = plain_rows(addresses)
    if rows is None:
        return None
    fields = {
        "stride": rows.stride,
        "is_unsigned": residual.view.value.dtype == "uint8",
        "multiplier": residual.multiplier,
        "constant": f"INT64_C({residual.constant})",
    }
    return f"{residual.view.value.name}_in + {rows.first}", structure(fields)
