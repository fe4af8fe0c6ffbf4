"""From a composite to a quantity, in the simplest form that it has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from entrain.deploy.lowering.composites.function import Function, narrow_index
from entrain.deploy.lowering.composites.product import Product
from entrain.deploy.lowering.one_source import function_of_one
from entrain.deploy.lowering.quantity import Affine, Composite, Part, known, value_of


def whole(composite: Composite) -> Affine:
    """The composite as a quantity.

    A constant if all that it is made of is known; one function if it is made of functions of the
    same tensor.
    """
    values = [value_of(operand) for operand in composite.operands]
    arrays = [value for value in values if value is not None]
    if len(arrays) == len(values):
        with np.errstate(all="ignore"):
            return known(np.broadcast_to(composite.evaluate(*arrays), composite.shape))
    quantity = _alone(composite)
    # a square stays one, since lengths are made of them
    if any(_functions(composite)) and not (isinstance(composite, Product) and composite.is_square):
        collapsed = function_of_one(quantity)
        if collapsed is not None:
            return _alone(Function(*collapsed))
    return quantity


def tabled(quantity: Affine) -> Affine:
    """A sum of functions of the same narrow tensor as one function, which one table does."""
    if any(isinstance(part.composite, Function) for part in quantity.parts):
        found = function_of_one(quantity)
        if found is not None and narrow_index(found[0]) is not None:
            return _alone(Function(*found))
    return quantity


def _alone(composite: Composite) -> Affine:
    return Affine((), np.zeros(()), composite.shape, parts=(Part(composite, np.ones(())),))


def _functions(composite: Composite) -> Iterator[Function]:
    """Functions that the composite is made of, itself left out."""
    for operand in composite.operands if composite.pointwise else ():
        for part in operand.parts:
            if isinstance(part.composite, Function):
                yield part.composite
            yield from _functions(part.composite)
