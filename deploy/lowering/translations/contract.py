"""What a translation is: a function from a Relax call to a quantity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from entrain.deploy.lowering.quantity import Quantity

# of the Relax call and the quantities of its tensor arguments; raises UnsupportedOperator, to
# which the importer adds the node and the tensor
Translation = Callable[[Any, Sequence[Quantity]], Quantity]


def integers(values: Any) -> tuple[int, ...]:
    """Relax attributes (axes, strides) as plain integers."""
    return tuple(int(value) for value in values)


def result_shape(call: Any) -> tuple[int, ...]:
    """The static shape of what a call returns."""
    return integers(call.ty.shape)
