"""A choice between tensors by a mask that is known when lowering."""

from __future__ import annotations

import numpy as np

from entrain.deploy.lowering.graph import Array, Shape
from entrain.deploy.lowering.integers import interval_of
from entrain.deploy.lowering.quantity import Affine, Part, Quantity, Term, compressed, value_of
from entrain.deploy.lowering.translations.elementwise import sum_of, summand

SWALLOWED = 2.0**25  # how much larger a number is that single precision adds another to in vain


def chosen_by(mask: Array, chosen: Quantity, other: Quantity, shape: Shape) -> Affine:
    """``chosen`` where the mask is true, ``other`` elsewhere."""
    depth, keep = value_of(other), np.broadcast_to(mask.astype(bool), shape)
    if depth is not None and _swallows(float(np.abs(depth).min()), chosen):
        # an attention's mask: minus infinity, to which a score adds nothing
        below = np.where(keep, 0.0, np.broadcast_to(depth, shape))
        return sum_of(chosen, Affine((), compressed(below), shape), shape)
    return sum_of(_masked(chosen, keep, shape), _masked(other, ~keep, shape), shape)


def _swallows(depth: float, quantity: Quantity) -> bool:
    return depth > SWALLOWED * max(map(abs, interval_of(quantity)))


def _masked(quantity: Quantity, keep: Array, shape: Shape) -> Affine:
    """The quantity, 0 where the mask is false."""
    flat = summand(quantity)
    terms = tuple(Term(term.node, compressed(term.scale * keep)) for term in flat.terms)
    parts = tuple(Part(part.composite, compressed(part.scale * keep)) for part in flat.parts)
    constant = compressed(np.where(keep, np.broadcast_to(flat.constant, shape), 0.0))
    return Affine(terms, constant, shape, parts=parts)
