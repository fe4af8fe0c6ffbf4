"""A function of a wide integer, by a table and straight lines between its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.arithmetic import interpolate
from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import static_shape


@dataclass(frozen=True)
class Interpolate:
    """The table's value at ``position / 2**fraction_bits`` (deploy.arithmetic.interpolate).

    Operands: the position, int32 and within the table, and the table of int16, its last value
    twice.
    """

    fraction_bits: int

    header = "entrain_interpolation.h"

    def result(self, position: Node, _table: Node) -> tuple[Shape, str]:
        """Shape of the position."""
        return position.shape, "int32"

    def interval(self, _position: Node, table: Node) -> Interval:
        """That of the table: a line between two values leaves neither behind."""
        return table.interval

    def reference(self, position: Array, table: Array) -> Array:
        """deploy.arithmetic's definition."""
        return interpolate(position, table, self.fraction_bits).astype(np.int32)

    def compute(self, name: str, position: Any, table: Any) -> Any:
        """Two loads and a multiplication, in ``entrain_interpolate`` of the C kernels."""
        from tvm import te, tirx

        def between(*i: Any) -> Any:
            place = position(*i) >> self.fraction_bits
            return tirx.call_pure_extern(
                "int32",
                "entrain_interpolate",
                table(place).astype("int32"),
                table(place + 1).astype("int32"),
                position(*i) & (2**self.fraction_bits - 1),
                tirx.const(self.fraction_bits, "int32"),
            )

        return te.compute(static_shape(position), between, name=name)
