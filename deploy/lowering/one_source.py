"""Whether a quantity, however it was written, is a function of one linear form.

GELU is ``0.5 x (1 + erf(x / sqrt(2)))``, softplus ``log(1 + exp(x))``: all of it depends on one x,
so one table does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from entrain.deploy.lowering.quantity import Affine, Reals, alike, compressed

Formula = Callable[[Reals], Reals]

NEARLY = 1e-12


def function_of_one(quantity: Affine) -> tuple[Affine, Formula] | None:
    """The linear form that decides each element of a quantity, and the function of it.

    None if there are several, if elements differ in what is done to them, or if one depends on
    another.
    """
    first = next(_linear_forms(quantity), None)
    formula = None if first is None else _formula(quantity, first)
    return None if first is None or formula is None else (first, formula)


def _linear_forms(quantity: Affine) -> Iterator[Affine]:
    """Sums of integer tensors within a quantity, their bounds and composites left out."""
    if quantity.terms:
        yield Affine(quantity.terms, quantity.constant, quantity.shape)
    for part in quantity.parts:
        for operand in part.composite.operands:
            yield from _linear_forms(operand)


def _formula(quantity: Affine, first: Affine) -> Formula | None:
    relation = _relation(first, quantity)
    if relation is None:
        return None
    factor, offset = relation
    summands: list[tuple[float, Callable[..., Reals], list[Formula]]] = []
    for part in quantity.parts:
        operands = [_formula(operand, first) for operand in part.composite.operands]
        known = [operand for operand in operands if operand is not None]
        uneven = part.scale.size != 1 or not part.composite.pointwise
        if uneven or len(known) != len(operands):
            return None
        summands.append((part.scale.item(), part.composite.evaluate, known))

    def formula(x: Reals) -> Reals:
        total = factor * x + offset
        for scale, evaluate, operands in summands:
            total = total + scale * evaluate(*(operand(x) for operand in operands))
        return np.clip(total, quantity.low, quantity.high)

    return formula


def _relation(first: Affine, quantity: Affine) -> tuple[float, float] | None:
    """A and b of ``a * first + b``, which the quantity is without its parts; None if it is not."""
    factor = 0.0
    if quantity.terms:
        nodes, others = ([term.node for term in each.terms] for each in (first, quantity))
        if len(nodes) != len(others) or not all(map(alike, nodes, others)):
            return None
        scales, multiples = ([term.scale for term in each.terms] for each in (first, quantity))
        factor = float(multiples[0].flat[0] / scales[0].flat[0])
        pairs = zip(scales, multiples, strict=True)
        if not all(np.allclose(m, factor * s, rtol=NEARLY, atol=0.0) for s, m in pairs):
            return None
    offset = compressed(np.asarray(quantity.constant - factor * first.constant))
    return (factor, float(offset.item())) if offset.size == 1 else None
