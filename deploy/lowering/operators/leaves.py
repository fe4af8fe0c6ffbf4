"""Where an expression begins: a value that a layer reads, or a constant array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.lowering.graph import UNBOUNDED, Array, Interval, Node, Shape, Value


@dataclass(frozen=True)
class Load:
    """The integers of a value, as stored."""

    value: Value

    def result(self) -> tuple[Shape, str]:
        """As the value."""
        return self.value.shape, self.value.dtype

    def interval(self) -> Interval:
        """The type's range."""
        return integer_range(self.value.dtype)

    def reference(self) -> Array:
        """Never called: the interpreter supplies the value."""
        raise LookupError(f"value {self.value.name} has not been computed")

    def compute(self, name: str) -> Any:
        """A parameter of the layer's function."""
        from tvm import te

        return te.placeholder(self.value.shape, self.value.dtype, name=name)


@dataclass(frozen=True, eq=False)
class Constant:
    """An array known when lowering: weights, tables, biases, multipliers."""

    array: Array

    def result(self) -> tuple[Shape, str]:
        """As the array."""
        return tuple(self.array.shape), str(self.array.dtype)

    def interval(self) -> Interval:
        """What occurs in the array."""
        if self.array.dtype.kind == "f" or not self.array.size:
            return UNBOUNDED
        return int(self.array.min()), int(self.array.max())

    def reference(self) -> Array:
        """The array itself."""
        return self.array

    def compute(self, name: str) -> Any:
        """A parameter of the layer's function, or a literal for a single number."""
        from tvm import te, tirx

        if self.array.size == 1:
            literal = tirx.const(self.array.reshape(()).item(), str(self.array.dtype))
            return te.compute(self.array.shape, lambda *_: literal, name=name)
        return te.placeholder(self.array.shape, str(self.array.dtype), name=name)


def load(value: Value) -> Node:
    """A node that reads a value."""
    leaf = Load(value)
    return Node(leaf, (), *leaf.result(), leaf.interval())


def constant(array: Array) -> Node:
    """A node that holds an array."""
    leaf = Constant(np.array(array, order="C"))
    return Node(leaf, (), *leaf.result(), leaf.interval())
