"""Rows of a constant table, chosen by integers that the network is given: an embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import static_shape


@dataclass(frozen=True)
class Gather:
    """``table[min(index, rows - 1)]``: an index beyond the table reads its last row, never memory.

    Operands: the index, which is not negative, and the table, rows first.
    """

    def result(self, index: Node, table: Node) -> tuple[Shape, str]:
        """The axes of the index, then those of a row."""
        return (*index.shape, *table.shape[1:]), table.dtype

    def interval(self, _index: Node, table: Node) -> Interval:
        """That of the table."""
        return table.interval

    def reference(self, index: Array, table: Array) -> Array:
        """Indexing in numpy."""
        return table[np.minimum(index.astype(np.int32), len(table) - 1)]

    def compute(self, name: str, index: Any, table: Any) -> Any:
        """One load an element; inlined by the schedule."""
        from tvm import te, tirx

        index_shape, table_shape = static_shape(index), static_shape(table)
        rank, last = len(index_shape), tirx.const(table_shape[0] - 1, "int32")

        def element(*i: Any) -> Any:
            return table(tirx.min(index(*i[:rank]).astype("int32"), last), *i[rank:])

        return te.compute((*index_shape, *table_shape[1:]), element, name=name)


@dataclass(frozen=True)
class Choose:
    """``operand[..., places[i], ...]`` along ``axis``: places that no even step describes.

    Operands: the tensor, and the places, [count] and all within the axis.
    """

    axis: int

    def result(self, operand: Node, places: Node) -> tuple[Shape, str]:
        """The axis gets as many elements as there are places."""
        before, after = operand.shape[: self.axis], operand.shape[self.axis + 1 :]
        return (*before, *places.shape, *after), operand.dtype

    def interval(self, operand: Node, _places: Node) -> Interval:
        """That of the operand."""
        return operand.interval

    def reference(self, operand: Array, places: Array) -> Array:
        """Indexing in numpy."""
        return operand.take(places, axis=self.axis)

    def compute(self, name: str, operand: Any, places: Any) -> Any:
        """One load of the place more; inlined by the schedule."""
        from tvm import te

        before = static_shape(operand)[: self.axis]
        after = static_shape(operand)[self.axis + 1 :]

        def element(*i: Any) -> Any:
            place = places(i[self.axis]).astype("int32")
            return operand(*i[: self.axis], place, *i[self.axis + 1 :])

        return te.compute((*before, *static_shape(places), *after), element, name=name)
