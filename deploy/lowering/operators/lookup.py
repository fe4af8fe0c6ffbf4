"""Tables: any function of one 8-bit number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.operators.broadcasting import static_shape


@dataclass(frozen=True)
class Lookup:
    """``table[index]``, element by element; every index must lie in the table."""

    def result(self, index: Node, table: Node) -> tuple[Shape, str]:
        """Shape of the index, type of the table."""
        return index.shape, table.dtype

    def interval(self, _index: Node, table: Node) -> Interval:
        """That of the table."""
        return table.interval

    def reference(self, index: Array, table: Array) -> Array:
        """Indexing in numpy."""
        return table[index]

    def compute(self, name: str, index: Any, table: Any) -> Any:
        """One load; inlined by the schedule."""
        from tvm import te

        return te.compute(
            static_shape(index), lambda *i: table(index(*i).astype("int32")), name=name
        )
