"""Choosing: rows of a table by the network's input, and fixed places of a tensor.

TVM's importer surrounds a Gather with what a negative index needs (the extent, a comparison, a
choice); with an index that is known, or never negative, all of that is known when lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Array, Node
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.gather import Choose, Gather
from entrain.deploy.lowering.operators.layout import Reshape, Slice
from entrain.deploy.lowering.operators.leaves import Constant
from entrain.deploy.lowering.quantity import (
    Affine,
    Quantity,
    Term,
    even_along,
    known,
    rearrange,
    sole_term,
    value_of,
)
from entrain.deploy.lowering.translations.contract import Translation, integers, result_shape
from entrain.deploy.lowering.translations.masks import chosen_by

MOST_ROWS = 256  # an input is one byte


def take(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """A Gather: of a constant by anything known, of a tensor by fixed places, of a table by ids."""
    source, index = operands
    axis = 0 if call.attrs.axis is None else int(call.attrs.axis) % len(source.shape)
    places, array = value_of(index), value_of(source)
    if places is None:
        return _rows(source, index, axis, result_shape(call))
    chosen = _within(places.astype(np.int64), source.shape[axis])
    if array is not None and not _is_table(source):
        return known(array.take(chosen, axis=axis))
    return _places(source, chosen, axis, result_shape(call))


def _within(places: Array, extent: int) -> Array:
    """The places, which are no longer negative here; one beyond the axis is nobody's."""
    if ((places < 0) | (places >= extent)).any():
        raise UnsupportedOperator(
            f"a Gather beyond the {extent} elements of its axis", remedy="correct the model"
        )
    return places


def _is_table(quantity: Quantity) -> bool:
    return isinstance(quantity, Affine) and bool(quantity.terms)


def _rows(table: Quantity, index: Quantity, axis: int, shape: tuple[int, ...]) -> Quantity:
    """A row of the table for each id."""
    rows, ids = sole_term(table), sole_term(index)
    if rows is None or not isinstance(rows.node.operator, Constant) or axis != 0:
        raise UnsupportedOperator(
            "a Gather by computed indices of something that is not a quantized constant table",
            remedy="gather rows (axis 0) of an int8 table behind a DequantizeLinear",
        )
    if ids is None or ids.scale.size != 1 or ids.scale.item() != 1 or ids.node.interval[0] < 0:
        raise _not_the_input()
    count = rows.node.shape[0]
    if count == 1:
        raise UnsupportedOperator("a table of one row", remedy="add the row instead")
    if count > MOST_ROWS:
        raise UnsupportedOperator(
            f"a table of {count} rows, and a firmware's input is one byte: {MOST_ROWS} at most",
            remedy=f"use a vocabulary of {MOST_ROWS} or fewer",
        )
    if not even_along(rows.scale, (0,), len(rows.node.shape)):
        raise UnsupportedOperator(
            "a table with a scale for each row", remedy="quantize the embedding per tensor"
        )
    scale = rows.scale if rows.scale.ndim < len(rows.node.shape) else rows.scale[0]
    node = apply(Gather(), ids.node, rows.node)
    return Affine((Term(node, scale),), np.zeros(()), shape)


def _not_the_input() -> UnsupportedOperator:
    return UnsupportedOperator(
        "a Gather whose indices are not the model's integer input",
        remedy="feed the indices as the model's input, as they are",
    )


def _places(source: Quantity, places: Array, axis: int, shape: tuple[int, ...]) -> Quantity:
    """Fixed places along an axis; evenly spaced ones are a Slice."""
    flat = places.ravel()
    if flat.size == 0:
        raise UnsupportedOperator("a Gather of nothing", remedy="correct the model")
    steps = np.diff(flat)
    if (steps != steps[:1]).any():
        table = constant(flat.astype(np.int32))
        return _chosen(source, lambda node: apply(Choose(axis), node, table), shape)
    cut = Slice(axis, int(flat[0]), int(steps[0]) if steps.size else 1, flat.size)
    return _chosen(source, lambda node: apply(cut, node), shape)


def _chosen(source: Quantity, choose: Callable[[Node], Node], shape: tuple[int, ...]) -> Quantity:
    def move(node: Node) -> Node:
        part = choose(node)
        return part if part.shape == shape else apply(Reshape(shape), part)

    return rearrange(source, move, shape)


def strided_slice(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """A Slice, one axis after the other; where it begins and ends is known."""
    axes, starts, ends, *steps = (_numbers(argument) for argument in call.args[1:])
    result = operands[0]
    for axis, start, end, step in zip(
        axes, starts, ends, steps[0] if steps else (1,) * len(axes), strict=True
    ):
        place = axis % len(result.shape)
        chosen = range(result.shape[place])[start:end:step]
        if not chosen:
            raise UnsupportedOperator(
                f"a Slice of none of the {result.shape[place]} elements of its axis",
                remedy="correct the model",
            )
        cut = Slice(place, chosen.start, chosen.step, len(chosen))
        shape = tuple(len(chosen) if k == place else n for k, n in enumerate(result.shape))
        result = _chosen(result, partial(apply, cut), shape)
    return result


def _numbers(argument: Any) -> tuple[int, ...]:
    return integers(field.value for field in argument.fields)


def shape_of(_call: Any, operands: Sequence[Quantity]) -> Quantity:
    """The extents, which are static."""
    return known(np.asarray(operands[0].shape))


def shape_to_tensor(call: Any, _operands: Sequence[Quantity]) -> Quantity:
    """The same extents, which Relax keeps in the type of its operand."""
    return known(np.asarray(integers(call.args[0].ty.values)))


def less(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Whether an index is negative: known for constants, and for an input, which never is."""
    left, right = (value_of(operand) for operand in operands)
    if left is not None and right is not None:
        return known(np.less(left, right))
    ids = sole_term(operands[0])
    if right is None or ids is None or (ids.scale <= 0).any():
        raise _not_the_input()
    if ids.node.interval[0] * float(ids.scale.min()) < right.max():
        raise _not_the_input()
    return known(np.zeros(result_shape(call)))


def where(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """A choice that is known when lowering."""
    condition, chosen, other = operands
    array = value_of(condition)
    if array is None:
        raise UnsupportedOperator("a choice between tensors", remedy="export it without")
    one, two = value_of(chosen), value_of(other)
    if one is not None and two is not None:
        return known(np.where(array, one, two))
    shape = result_shape(call)
    if array.all() and chosen.shape == shape:
        return chosen
    if not array.any() and other.shape == shape:
        return other
    return chosen_by(array, chosen, other, shape)


def as_type(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Integers of another width are the same integers."""
    kinds = str(call.args[0].ty.dtype), str(call.ty.dtype)
    if not all(kind.startswith(("int", "uint")) for kind in kinds):
        raise UnsupportedOperator(
            f"a Cast from {kinds[0]} to {kinds[1]}", remedy="export the model without it"
        )
    return operands[0]


TRANSLATIONS: dict[str, Translation] = {
    "relax.take": take,
    "relax.strided_slice": strided_slice,
    "relax.shape_of": shape_of,
    "relax.shape_to_tensor": shape_to_tensor,
    "relax.less": less,
    "relax.where": where,
    "relax.astype": as_type,
}
ONNX_OPERATORS = {"Gather", "Slice", "Cast", "Where"}
