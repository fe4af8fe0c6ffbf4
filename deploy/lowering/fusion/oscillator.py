"""Recognising oscillator attention: anchors, coupling, epsilon and exponent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from entrain.deploy.lowering.fusion import formulas
from entrain.deploy.lowering.fusion.contract import (
    Reals,
    Sample,
    Strides,
    likely_factors,
    matches,
)
from entrain.deploy.lowering.fusion.region import Region
from entrain.deploy.lowering.graph import Array, Node, Value
from entrain.deploy.lowering.operators.oscillator_attention import oscillator_attention
from entrain.deploy.lowering.views import View

UNIT_STEPS = 127  # a component of an anchor is a multiple of 1/127
EXPONENTS = range(1, 9)
LARGEST_DIMENSION = 64


@dataclass(frozen=True, eq=False)
class OscillatorMechanism:
    """sum_j a_ij v_j, a_ij ~ (1 + z_i.r_j)^p, z_i = h_i / |h_i|, h_i = sum_j (w_ij + eps) r_j."""

    anchors: Array  # int8 [H or 1, T, d_osc], in steps of 1/127
    coupling: str
    scale: float
    epsilon: float
    exponent: int
    title: str = "oscillator attention"

    def node(self, query: View, key: View, value: View, output: Value, strides: Strides) -> Node:
        """See ``Mechanism``."""
        return oscillator_attention(
            query,
            key,
            value,
            anchors=self.anchors,
            anchor_scale=1.0 / UNIT_STEPS,
            score_scale=self.scale,
            coupling=self.coupling,
            epsilon=self.epsilon,
            exponent=self.exponent,
            output=output,
            output_strides=strides,
        )


def recognise_oscillator(region: Region, samples: tuple[Sample, ...]) -> OscillatorMechanism | None:
    """Oscillator attention on constant anchors."""
    if not {"Div", "Sqrt"} <= region.operators and "ReduceL2" not in region.operators:
        return None
    heads, tokens, d_head = samples[0].keys.shape
    couplings = [c for c in formulas.COUPLINGS if c != "softplus" or "Softplus" in region.operators]
    for anchors in _anchors(region, heads, tokens):
        choices = product(couplings, likely_factors(region, d_head), _epsilons(region, anchors))
        for coupling, scale, epsilon in choices:
            exponent = _exponent(samples, anchors, coupling, scale, epsilon)
            if exponent is not None:
                codes = np.rint(anchors * UNIT_STEPS).astype(np.int8)
                return OscillatorMechanism(codes, coupling, scale, epsilon, exponent)
    return None


def _exponent(
    samples: tuple[Sample, ...], anchors: Reals, coupling: str, scale: float, epsilon: float
) -> int | None:
    """The exponent with which this field gives the region's context, if any does."""
    states = {
        id(s): formulas.settled(s.queries, s.keys, anchors, coupling, scale, epsilon)
        for s in samples
    }
    for exponent in EXPONENTS:

        def formula(s: Sample, exponent: int = exponent) -> Reals:
            return formulas.read_out(states[id(s)], anchors, s.values, exponent)

        if matches(samples, formula):
            return exponent
    return None


def _anchors(region: Region, heads: int, tokens: int) -> Iterator[Reals]:
    """Constant arrays that may be the anchors: a vector of steps of 1/127 for each token."""
    for array in region.arrays:
        extents = [extent for extent in array.shape if extent > 1]
        count = array.size // tokens
        for shared in dict.fromkeys((heads, 1)):
            d_osc = count // shared
            fits = array.size == shared * tokens * d_osc and 2 <= d_osc <= LARGEST_DIMENSION
            if not fits or not np.allclose(array * UNIT_STEPS, np.rint(array * UNIT_STEPS)):
                continue
            expected = [extent for extent in (shared, tokens, d_osc) if extent > 1]
            turned = [extent for extent in (shared, d_osc, tokens) if extent > 1]
            if extents == expected:
                yield array.reshape(shared, tokens, d_osc)
            if extents == turned:
                yield np.swapaxes(array.reshape(shared, d_osc, tokens), 1, 2)


def _epsilons(region: Region, anchors: Reals) -> list[float]:
    """What may be added to couplings: numbers of the region, or folded into epsilon sum_j r_j."""
    found = {0.0, *(number for number in region.numbers if 1e-9 < number < 1.0)}
    total = anchors.sum(axis=1)
    for array in region.arrays:
        if array.size == total.size and (total * total).sum() > 0.0:
            epsilon = float((array.reshape(-1) @ total.reshape(-1)) / (total * total).sum())
            if (
                np.allclose(array.reshape(-1), epsilon * total.reshape(-1), rtol=1e-3)
                and epsilon > 0
            ):
                found.add(epsilon)
    return sorted(found)
