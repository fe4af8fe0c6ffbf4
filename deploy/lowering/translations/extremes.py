"""Max and Min of several tensors, which arrive as the largest of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf
from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.composing import whole
from entrain.deploy.lowering.composites.total import Highest
from entrain.deploy.lowering.graph import Interval, Shape
from entrain.deploy.lowering.quantity import Affine, Quantity, Reals, Term, sole_part
from entrain.deploy.lowering.translations.contract import Translation, result_shape
from entrain.deploy.lowering.translations.elementwise import larger_of, scaled
from entrain.deploy.lowering.translations.reductions import axes_of

MINUS = np.asarray(-1.0)


@dataclass(frozen=True)
class Stack:
    """Tensors of one shape along a new first axis, until the largest of them is asked for."""

    operands: tuple[Affine, ...]

    pointwise = False
    interval: Interval = (-inf, inf)

    @property
    def shape(self) -> Shape:
        """The number of tensors, then their shape."""
        return (len(self.operands), *self.operands[0].shape)

    def of(self, *operands: Affine) -> Stack:
        """The same of other operands."""
        return Stack(operands)

    def evaluate(self, *operands: Reals) -> Reals:
        """The stacked values."""
        return np.stack([np.broadcast_to(operand, self.shape[1:]) for operand in operands])

    def integers(self, _bits: int, _reach: float) -> Term:
        """Never stored."""
        raise UnsupportedOperator(
            "a stack of tensors of which neither the largest nor the smallest is taken",
            remedy="export it as a Concat",
        )


def stack(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Along a new first axis."""
    axis = 0 if call.attrs.axis is None else int(call.attrs.axis)
    if axis != 0:
        raise UnsupportedOperator("a stack along another axis than the first", remedy="use Concat")
    return whole(Stack(tuple(operands)))


def highest(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """ReduceMax; of a stack Max, ``a + max(b - a, 0)`` again and again."""
    return _highest(operands[0], call)


def lowest(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """ReduceMin and Min: minus the largest of the negative."""
    return scaled(_highest(_negative(operands[0]), call), MINUS, result_shape(call))


def _highest(quantity: Quantity, call: Any) -> Affine:
    axes, stacked = axes_of(call, len(quantity.shape)), _stacked(quantity)
    if stacked is not None and axes == (0,):
        return reduce(lambda a, b: larger_of(a, b, result_shape(call)), stacked)
    return whole(Highest(quantity, axes, result_shape(call)))


def _stacked(quantity: Quantity) -> tuple[Affine, ...] | None:
    part = sole_part(quantity)
    return part.composite.operands if part and isinstance(part.composite, Stack) else None


def _negative(quantity: Quantity) -> Affine:
    stacked = _stacked(quantity)
    if stacked is None:
        return scaled(quantity, MINUS, quantity.shape)
    return whole(Stack(tuple(scaled(each, MINUS, each.shape) for each in stacked)))


TRANSLATIONS: dict[str, Translation] = {
    "relax.stack": stack,
    "relax.max": highest,
    "relax.min": lowest,
}
ONNX_OPERATORS = {"ReduceMax", "ReduceMin", "Max", "Min"}
