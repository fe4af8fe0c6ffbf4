"""Bytes for the layers that tests make: values of any type and zero point, and pieces of them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.lowering.graph import Node, Shape, Value
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.layout import Reshape, Slice
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.translations.offsets import less

BYTES = 6000
STRETCH = 50
STORED = {
    # zero points in the middle and at each end, whatever the type
    f"{dtype}_{place}": Value(f"{dtype}_{place}", (BYTES,), dtype, 1.0, zero_point, "x")
    for dtype, zero_points in (("int8", (-128, 5, 127)), ("uint8", (0, 133, 255)))
    for place, zero_point in zip(("low", "middle", "high"), zero_points, strict=True)
}


def stored_bytes(seed: int) -> dict[str, Any]:
    """Any bytes, and stretches of the largest and smallest ones."""
    random = np.random.default_rng(seed)
    stored = {}
    for name, value in STORED.items():
        ends = integer_range(value.dtype)
        values = random.integers(*ends, BYTES, endpoint=True)
        extreme = np.repeat(random.integers(0, 2, BYTES // STRETCH) == 0, STRETCH)
        values[extreme] = random.choice(ends, int(extreme.sum()))
        stored[name] = values.astype(value.dtype)
    return stored


def tensor(source: str, first: int, shape: Shape) -> Node:
    """Neighbouring bytes of a value, without its zero point."""
    value = STORED[source]
    part = apply(Slice(0, first, 1, prod(shape)), load(value))
    return less(apply(Reshape(shape), part), value.zero_point)
