"""Recognising oscillator attention: anchors, coupling, epsilon and exponent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from entrain.deploy.lowering.fusion import formulas
from entrain.deploy.lowering.fusion.contract import (
    TOLERANCE,
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

    def context(self, s: Sample) -> Reals:
        """What it makes of a sample, [H, Q, V]."""
        anchors = self.anchors / UNIT_STEPS
        settings = self.coupling, self.scale, self.epsilon
        state = formulas.settled(s.queries, s.keys, anchors, *settings)
        return formulas.read_out(state, anchors, s.values, self.exponent)

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
    factors = likely_factors(region, d_head)
    for anchors in _anchors(region, heads, tokens):
        settings = np.asarray(list(product(factors, _epsilons(region, anchors))))
        for coupling in couplings:
            for likely in _likely(samples, anchors, coupling, settings):
                if matches(samples, likely.context):
                    return likely
    return None


def _likely(
    samples: tuple[Sample, ...], anchors: Reals, coupling: str, settings: Reals
) -> Iterator[OscillatorMechanism]:
    """Those that give the context of each head's first query.

    All settings are tried at once, on one query after another: hardly any outlasts the first.

    Args:
        samples: what the region does.
        anchors: [H or 1, T, d_osc].
        coupling: one of ``formulas.COUPLINGS``.
        settings: scales and epsilons to be tried, [N, 2].
    """
    fits = np.ones((len(settings), len(EXPONENTS)), bool)
    for sample, head in product(samples, range(len(samples[0].keys))):
        if not fits.any():
            return
        left = fits.any(axis=1)
        settings, fits = settings[left], fits[left]
        contexts = _first_contexts(sample, head, anchors[head % len(anchors)], coupling, settings)
        error = np.abs(contexts - sample.context[head, 0]).max(axis=-1)
        fits &= error <= TOLERANCE * np.abs(sample.context).max()
    codes = np.rint(anchors * UNIT_STEPS).astype(np.int8)
    for index, exponent in np.argwhere(fits):
        scale, epsilon = settings[index].tolist()
        yield OscillatorMechanism(codes, coupling, scale, epsilon, EXPONENTS[exponent])


def _first_contexts(
    sample: Sample, head: int, anchors: Reals, coupling: str, settings: Reals
) -> Reals:
    """What the first query of a head gets with each setting and each exponent, [N, 8, V]."""
    scale, epsilon = settings.T[..., None, None, None]
    query, keys = sample.queries[head, :1], sample.keys[head]
    state = formulas.settled(query, keys, anchors, coupling, scale, epsilon)
    exponents = np.asarray(EXPONENTS)[:, None, None]
    return formulas.read_out(state, anchors, sample.values[head], exponents)[..., 0, :]


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
