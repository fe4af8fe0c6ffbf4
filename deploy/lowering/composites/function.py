"""A function of one number, of each element of a tensor: a table, with lines between if need be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Array, Interval, Node, Shape
from entrain.deploy.lowering.integers import (
    MOST_BITS,
    in_integers,
    in_steps,
    integers,
    interval_of,
    unbounded,
)
from entrain.deploy.lowering.one_source import Formula
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import SUBTRACT_INTEGERS
from entrain.deploy.lowering.operators.interpolation import Interpolate
from entrain.deploy.lowering.operators.leaves import Constant
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.quantity import Affine, Reals, Term

SHORT_BITS = 15  # magnitudes of int16
LONG_BITS = 28
SPREAD = 2.0**8  # of magnitudes that int16 still tells apart
MOST_ENTRIES = 1024  # of a table with an entry for each integer
SEGMENTS = (128, 256, 512, 1024)
FRACTION_BITS = (8, 6, 4)  # of a place between two entries
FINE_ERROR = 2.0**-14  # of the largest value: what lines should keep to
LARGEST_ERROR = 2.0**-9  # what is refused beyond
SAMPLES = 2**14
ROUNDS = 6  # of looking closer at where a function changes


@dataclass(frozen=True)
class Index:
    """A node that numbers what a narrow quantity can be, from 0; and what that is."""

    node: Node
    values: Reals


def narrow_index(quantity: Affine) -> Index | None:
    """The index of a quantity without bounds that is one of few numbers; None if of many."""
    if quantity.clipped or not (quantity.terms or quantity.parts):
        return None
    offset = quantity.constant.item() if quantity.constant.size == 1 else 0.0
    uneven = quantity.constant if quantity.constant.size > 1 else np.zeros(())
    term = integers(replace(quantity, constant=uneven), MOST_BITS)
    low, high = (int(end) for end in term.node.interval)
    if high - low >= MOST_ENTRIES:
        return None
    values = np.arange(low, high + 1) * np.float64(term.scale) + np.float64(offset)
    stored, zero_point = _stored(term.node)
    return Index(_from_zero(stored, low + zero_point), values)


def _stored(node: Node) -> tuple[Node, int]:
    """The node below a subtracted zero point, and the zero point."""
    if node.operator is SUBTRACT_INTEGERS and isinstance(node.operands[1].operator, Constant):
        array = node.operands[1].operator.array
        if array.size == 1:
            return node.operands[0], int(array.item())
    return node, 0


def _from_zero(node: Node, low: int) -> Node:
    return apply(SUBTRACT_INTEGERS, node, constant(np.asarray(low, np.int32))) if low else node


@dataclass(frozen=True)
class Function:
    """``formula(operand)``, element by element.

    ``table_bits`` bounds the magnitudes of its table.
    """

    operand: Affine
    formula: Formula
    table_bits: int = LONG_BITS

    pointwise = True

    @property
    def shape(self) -> Shape:
        """That of the operand."""
        return self.operand.shape

    @property
    def operands(self) -> tuple[Affine, ...]:
        """The one."""
        return (self.operand,)

    @property
    def interval(self) -> Interval:
        """What the formula gives between the operand's ends; a table clips to it in any case."""
        low, high = interval_of(self.operand)
        if not (isfinite(low) and isfinite(high)):
            return -inf, inf
        values = self.evaluate(np.linspace(low, high, SAMPLES))
        return float(values.min()), float(values.max())

    def of(self, operand: Affine) -> Function:
        """The same of another operand."""
        return Function(operand, self.formula, self.table_bits)

    def evaluate(self, operand: Reals) -> Reals:
        """The formula, with nothing where it has no value."""
        with np.errstate(all="ignore"):
            return np.nan_to_num(self.formula(operand), nan=0.0, posinf=inf, neginf=-inf)

    def integers(self, bits: int, reach: float) -> Term:
        """An entry for each integer of a narrow operand, else lines between a few hundred."""
        narrow = narrow_index(self.operand)
        if narrow is None:
            return self._interpolated(bits, reach)
        values = self._bounded(narrow.values, reach)
        table, width = _in_table(values, min(bits, self._bits_for(values)))
        return Term(apply(Lookup(), narrow.node, constant(table)), width)

    def _bits_for(self, values: Reals) -> int:
        """Few, if they tell the smallest value that is not 0 from its neighbours."""
        magnitudes = np.abs(values[values != 0.0])
        if not magnitudes.size or magnitudes.max() <= SPREAD * magnitudes.min():
            return SHORT_BITS
        return self.table_bits

    def _bounded(self, places: Reals, reach: float) -> Reals:
        values = np.clip(self.evaluate(places), -reach, reach)
        if not np.isfinite(values).all():
            raise unbounded()
        return values

    def _interpolated(self, bits: int, reach: float) -> Term:
        """Lines between the formula's values where it changes; constant on both sides."""
        low, high = interval_of(self.operand)
        if not (isfinite(low) and isfinite(high)):
            raise unbounded()
        start, end = self._where_it_changes(low, high, reach)
        for segments in SEGMENTS:
            grid = np.linspace(start, end, segments + 1)
            values = self._bounded(grid, reach)
            error = self._error(grid, values, reach)
            if error <= FINE_ERROR:
                break
        if error > LARGEST_ERROR:
            raise UnsupportedOperator(
                f"a function too steep for a table of {segments} values from {start:.3g} to "
                f"{end:.3g} (it would be {error:.1%} off)",
                remedy="quantize its operand",
            )
        table, width = _in_table(np.append(values, values[-1]), min(bits, SHORT_BITS))
        position, fraction_bits = self._position(start, (end - start) / segments, segments)
        return Term(apply(Interpolate(fraction_bits), position, constant(table)), width)

    def _where_it_changes(self, low: float, high: float, reach: float) -> tuple[float, float]:
        """The ends of the interval, drawn in to where the formula no longer stays what it was."""
        start, end = low, high
        for _ in range(ROUNDS):
            grid = np.linspace(start, end, SAMPLES)
            values = self._bounded(grid, reach)
            still = FINE_ERROR / 4 * max(float(np.abs(values).max()), 1e-30)
            moved = np.flatnonzero(np.abs(values - values[0]) > still)
            turned = np.flatnonzero(np.abs(values - values[-1]) > still)
            if not moved.size:
                return start, end
            first, last = max(int(moved[0]) - 1, 0), min(int(turned[-1]) + 1, SAMPLES - 1)
            start, end = float(grid[first]), float(grid[last])
        return start, end

    def _error(self, grid: Reals, values: Reals, reach: float) -> float:
        """How far lines are off, relative to the largest value, in eight places of each."""
        between = np.linspace(grid[0], grid[-1], 8 * (len(grid) - 1) + 1)
        exact = self._bounded(between, reach)
        off = np.abs(np.interp(between, grid, values) - exact).max()
        return float(off / max(float(np.abs(exact).max()), 1e-30))

    def _position(self, start: float, length: float, segments: int) -> tuple[Node, int]:
        """Where the operand lies, in fractions of a segment, within the table."""
        operand = in_integers(self.operand, MOST_BITS, inf)
        shifted = Affine(
            operand.terms,
            operand.constant - start,
            operand.shape,
            operand.low - start,
            operand.high - start,
        )
        for bits in FRACTION_BITS:
            step = length / 2.0**bits if length else 1.0
            try:
                return in_steps(shifted, step, *_within(shifted, step, segments << bits)), bits
            except UnsupportedOperator:
                if bits == FRACTION_BITS[-1]:
                    raise
        raise LookupError("no number of bits")


def _within(quantity: Affine, step: float, most: int) -> tuple[int, int]:
    """The quantity's bounds in steps, within a table."""
    low, high = np.clip([quantity.low / step, quantity.high / step], 0, most)
    return round(float(low)), round(float(high))


def _in_table(values: Reals, bits: int) -> tuple[Array, Reals]:
    """The values in integers of so many bits, and their step."""
    step = float(np.abs(values).max()) / (2**bits - 1) or 1.0
    table = np.rint(values / step).astype(np.int16 if bits <= SHORT_BITS else np.int32)
    return table, np.asarray(step)
