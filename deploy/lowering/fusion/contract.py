"""What a recogniser is given and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.lowering.fusion.region import Region
from entrain.deploy.lowering.graph import Node, Value
from entrain.deploy.lowering.views import View

Reals = NDArray[np.float64]
TOLERANCE = 1e-4  # of the largest value: single precision, and the sums of a whole row
# Single precision leaves few digits of elu(x) + 1 for a very negative x, and a query of which all
# features are so small reads out as much off: some values may be, by a little.
CANCELLED_SHARE, CANCELLED_TOLERANCE = 0.05, 1e-2


@dataclass(frozen=True)
class Sample:
    """Random real inputs of a region and what it makes of them.

    Queries [H, Q, D], keys [H, T, D], values [H, T, V] and context [H, Q, V].
    """

    queries: Reals
    keys: Reals
    values: Reals
    context: Reals


class Mechanism(Protocol):
    """A recognised attention, with every number that defines it."""

    @property
    def title(self) -> str:
        """What the layer does, for people."""

    def node(self, query: View, key: View, value: View, output: Value, strides: Strides) -> Node:
        """The integer operator over three views, which writes ``output`` with these strides."""


Strides = tuple[int, int, int]  # of head, token and channel
Recogniser = Callable[[Region, tuple[Sample, ...]], Mechanism | None]


def matches(samples: tuple[Sample, ...], formula: Callable[[Sample], Reals]) -> bool:
    """Whether a formula gives every sample's context."""
    return all(_close(formula(sample), sample.context) for sample in samples)


def _close(ours: Reals, theirs: Reals) -> bool:
    largest = float(np.abs(theirs).max(initial=0.0))
    error = np.abs(ours - theirs)
    off = float(np.mean(error > TOLERANCE * largest)) if error.size else 0.0
    farthest = float(error.max(initial=0.0))
    return off <= CANCELLED_SHARE and farthest <= CANCELLED_TOLERANCE * largest


def likely_factors(region: Region, d_head: int) -> list[float]:
    """Factors that scores may have: the region's numbers, their inverses, 1/sqrt(D), log 2.

    A factor that stands in no constant of its own is found among the products of two of these.
    """
    usual = [1.0, d_head**-0.5, float(np.log(2.0))]
    numbers = [abs(number) for number in region.numbers if 1e-6 < abs(number) < 1e6]
    single = [*usual, *numbers, *(1.0 / number for number in numbers)]
    products = [a * b for index, a in enumerate(single) for b in single[index:]]
    distinct: dict[float, float] = {}
    for factor in [*single, *products]:
        distinct.setdefault(float(f"{factor:.5g}"), factor)
    return list(distinct.values())
