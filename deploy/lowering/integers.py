"""Integer tensors for real quantities, as precise as they have to be.

:func:`integers` makes of any quantity one int32 node and the width of its step. It is exact where
the quantity's steps are whole multiples of one another and the bits suffice, else rounded once.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf, isfinite, log2

import numpy as np

from entrain.deploy.arithmetic import fixed_point
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Interval, Node, Shape
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import (
    ADD_INTEGERS,
    MULTIPLY_INTEGERS,
    SUBTRACT_INTEGERS,
)
from entrain.deploy.lowering.operators.quantizers import Narrow, Requantize
from entrain.deploy.lowering.quantity import Affine, Part, Reals, Term, compressed

MOST_BITS = 30  # of a whole multiple
ROUNDED_BITS = 27  # of what is rounded: requantization leaves room for sums that cancel
PART_BITS = 24  # of a composite that is summed with others
LARGEST_MULTIPLE = 2**15
FINEST = 12  # bits that a constant may add to the steps of what it is added to
NEARLY = 1e-9


def interval_of(quantity: Affine) -> Interval:
    """The smallest and the largest real number that a quantity can be, infinite if unknown."""
    low = high = quantity.constant
    for term in quantity.terms:
        ends = term.scale * term.node.interval[0], term.scale * term.node.interval[1]
        low, high = low + np.minimum(*ends), high + np.maximum(*ends)
    for part in quantity.parts:
        least, most = (_times(part.scale, end) for end in part.composite.interval)
        low, high = low + np.minimum(least, most), high + np.maximum(least, most)
    bounds = np.min(low, initial=inf), np.max(high, initial=-inf)
    clipped = np.clip(bounds, quantity.low, quantity.high)
    return float(clipped[0]), float(clipped[1])


def _times(scale: Reals, end: float) -> Reals:
    """Without a NaN for 0 times infinity."""
    return np.where(scale == 0.0, 0.0, scale * end) if not isfinite(end) else scale * end


def width(node: Node) -> int:
    """Bits of the node's largest magnitude."""
    return max(abs(int(end)) for end in node.interval).bit_length()


def integers(quantity: Affine, bits: int, reach: float = inf) -> Term:
    """An int32 node of at most ``bits`` bits that holds the quantity, and its step, one number.

    Args:
        quantity: anything; its node may be smaller than its shape where it broadcasts.
        bits: magnitudes stay below ``2**bits``.
        reach: the largest magnitude that matters; beyond it the node may saturate.

    Raises:
        UnsupportedOperator: it may grow without bound, or nothing bounded represents it.
    """
    terms = in_integers(quantity, bits, reach)
    exact = _whole_multiples(terms, bits)
    return _rounded(terms, bits, reach) if exact is None else exact


def in_integers(quantity: Affine, bits: int, reach: float) -> Affine:
    """The quantity with every part as a term; bounds and constant stay."""
    if not quantity.parts:
        return quantity
    if quantity.clipped:
        reach = min(reach, max(abs(quantity.low), abs(quantity.high)))
    alone = len(quantity.parts) + len(quantity.terms) == 1
    terms = list(quantity.terms)
    for part in quantity.parts:
        others = interval_of(replace(quantity, parts=_without(quantity, part), low=-inf, high=inf))
        least = float(np.abs(part.scale).min())
        needed = (reach + max(map(abs, others))) / least if least > 0.0 else inf
        term = part.composite.integers(bits if alone else min(bits, PART_BITS), needed)
        terms.append(Term(term.node, term.scale * part.scale))
    return replace(quantity, terms=tuple(terms), parts=())


def _without(quantity: Affine, part: Part) -> tuple[Part, ...]:
    return tuple(other for other in quantity.parts if other is not part)


def _whole_multiples(quantity: Affine, bits: int) -> Term | None:
    """The exact sum in steps of the finest term, if the others' steps are multiples of it.

    A constant makes the steps finer by a power of two, as far as the bits go.
    """
    if quantity.clipped or not quantity.terms or any(s.size != 1 for s in quantity.scales):
        return None
    scales = np.asarray([scale.item() for scale in quantity.scales])
    unit = float(np.abs(scales).min())
    if unit == 0.0:
        return None
    multiples = scales / unit
    counts = np.rint(multiples).astype(np.int64)
    if np.abs(multiples / counts - 1.0).max() > NEARLY or np.abs(counts).max() > LARGEST_MULTIPLE:
        return None
    nodes = [term.node for term in quantity.terms]
    steps = quantity.constant / unit
    reach = sum(abs(int(n)) * _peak(node) for n, node in zip(counts, nodes, strict=True))
    spare = min(bits, MOST_BITS) - ceil(log2(reach + float(np.abs(steps).max()) + 1.0))
    if reach > 2**MOST_BITS or (spare < 0 and (len(nodes) > 1 or steps.any())):
        return None
    finer = 0 if _is_whole(steps) else min(spare, FINEST)
    scaled = [int(count) << finer for count in counts]
    node = _sum_of_multiples(scaled, nodes)
    if steps.any():
        offset = constant(np.rint(np.ldexp(steps, finer)).astype(np.int32))
        node = apply(ADD_INTEGERS, node, offset)
    return narrowed(Term(node, np.asarray(unit / 2.0**finer)), bits)


def _peak(node: Node) -> int:
    return max(abs(int(end)) for end in node.interval)


def _is_whole(steps: Reals) -> bool:
    return bool((np.abs(steps - np.rint(steps)) <= NEARLY * np.abs(steps)).all())


def _sum_of_multiples(counts: list[int], nodes: list[Node]) -> Node:
    """``sum_k counts[k] * nodes[k]``, what is added first, what is taken away last."""
    total: Node | None = None
    for count, node in sorted(zip(counts, nodes, strict=True), key=lambda pair: -pair[0]):
        if total is not None and count < 0:
            total = apply(SUBTRACT_INTEGERS, total, _multiple(-count, node))
        else:
            multiple = _multiple(count, node)
            total = multiple if total is None else apply(ADD_INTEGERS, total, multiple)
    if total is None:
        raise LookupError("a sum of nothing")
    return total


def _multiple(count: int, node: Node) -> Node:
    if count == 1:
        return node
    return apply(MULTIPLY_INTEGERS, node, constant(np.asarray(count, np.int32)))


def narrowed(term: Term, bits: int) -> Term:
    """The term in ``bits`` bits, its last ones rounded off."""
    surplus = width(term.node) - bits
    if surplus <= 0:
        return term
    return Term(apply(Narrow(surplus), term.node), term.scale * 2.0**surplus)


def _rounded(quantity: Affine, bits: int, reach: float) -> Term:
    """The quantity requantized to steps that make the most of the bits."""
    low, high = np.clip(interval_of(quantity), -reach, reach)
    magnitude = max(abs(low), abs(high))
    if not isfinite(magnitude):
        raise unbounded()
    step = magnitude / (2 ** min(bits, ROUNDED_BITS) - 1) if magnitude else 1.0
    step = max(step, _reach(quantity) / 2.0**ROUNDED_BITS)
    node = in_steps(quantity, step, round(low / step), round(high / step))
    return Term(node, np.asarray(step))


def unbounded() -> UnsupportedOperator:
    """What has no integer form because nothing says how large it may grow."""
    return UnsupportedOperator(
        "a quotient or a function that may grow without bound is used before it is quantized",
        remedy="put QuantizeLinear and DequantizeLinear behind it, or clip it",
    )


def _reach(quantity: Affine) -> float:
    """The largest magnitude of the sum, whatever its bounds."""
    reach = np.abs(quantity.constant)
    for term in quantity.terms:
        reach = reach + np.abs(term.scale) * _peak(term.node)
    return float(reach.max())


def in_steps(quantity: Affine, step: float, low: int, high: int) -> Node:
    """``clip(round(quantity / step), low, high)`` of a quantity without parts, in int32.

    Raises:
        UnsupportedOperator: it may be too many steps away from 0.
    """
    bias = compressed(np.asarray(quantity.constant / step))
    shape = _shape(quantity)
    if not quantity.terms:
        return constant(np.broadcast_to(np.clip(np.rint(bias), low, high), shape).astype(np.int32))
    factors = tuple(compressed(np.asarray(term.scale / step)) for term in quantity.terms)
    nodes = [term.node for term in quantity.terms]
    try:
        fixed = fixed_point(factors, bias, tuple(map(_peak, nodes)))
    except OverflowError as error:
        raise UnsupportedOperator(
            f"an intermediate sum may be {error} steps of {step:.3g} away from 0",
            remedy="quantize it before what follows",
        ) from error
    operator = Requantize(shape, "int32", len(nodes), fixed.bias_shift, fixed.shift, 0, low, high)
    multipliers = [constant(multiplier) for multiplier in fixed.multipliers]
    return apply(operator, *nodes, *multipliers, constant(fixed.bias))


def _shape(quantity: Affine) -> Shape:
    """The smallest shape that broadcasts to all elements that differ."""
    shapes = [term.node.shape for term in quantity.terms]
    arrays = [quantity.constant.shape, *(scale.shape for scale in quantity.scales)]
    return tuple(np.broadcast_shapes(*shapes, *arrays))
