"""How exact the settled states are, how long the dynamics take, and what the word lengths cost.

All against float64: the reference's own formats by the reference, others by an experiment that does
in floats and integers what the blocks do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic.settling import STATE_ONE
from entrain.fpga.dynamics import Dynamics
from entrain.fpga.reference import LARGEST_COUPLING, Flags
from entrain.fpga.verification.instances import random_anchors, settling_core
from entrain.fpga.verification.vectors import couplings

Reals = NDArray[np.float64]

STATE_BOUND = 2.0**-10  # of |z - z*|, wherever the field is not weak
TOKENS = 64
COMPONENTS = (2, 4, 8, 16, 32)
SCHEMES: dict[str, Dynamics | None] = {"closed form": None, "dynamics": Dynamics()}
STATE_BITS = tuple(range(8, 17))
ANCHOR_BITS = (6, 7, 8)


@dataclass(frozen=True)
class StateError:
    """How far settled states are from ``h / |h|`` of their integer fields.

    Attributes:
        scheme: ``closed form`` or ``dynamics``.
        d_osc: components.
        vectors: queries whose field is not weak.
        weak: queries whose field is, which are left out.
        largest: the largest Euclidean distance.
        steps_mean: of the dynamics; 0 of the closed form, as the next two.
        steps_p99: 99 % of the queries take no more.
        steps_most: the slowest query.
        not_converged: queries that moved at the last step still.
    """

    scheme: str
    d_osc: int
    vectors: int
    weak: int
    largest: float
    steps_mean: float
    steps_p99: float
    steps_most: int
    not_converged: int

    @property
    def holds(self) -> bool:
        """Whether no state is further than the bound."""
        return self.largest < STATE_BOUND


def state_errors(
    queries: int, seed: int = 0, components: Sequence[int] = COMPONENTS
) -> Iterator[StateError]:
    """Of both schemes and each d_osc: 64 tokens, so many queries of all magnitudes."""
    for d_osc in components:
        rng = np.random.default_rng((seed, d_osc))
        anchors = random_anchors(rng, TOKENS, d_osc)
        given = couplings(rng, TOKENS, queries)
        for scheme, dynamics in SCHEMES.items():
            settled = settling_core(anchors, dynamics=dynamics).settled(given)
            sure = settled.flags & (Flags.WEAK | Flags.ZERO) == 0
            exact = _directions((given @ anchors).astype(np.float64))
            distances = np.linalg.norm(settled.states / STATE_ONE - exact, axis=1)[sure]
            steps = settled.steps[sure]
            yield StateError(
                scheme,
                d_osc,
                int(sure.sum()),
                int((~sure).sum()),
                float(distances.max()),
                float(steps.mean()),
                float(np.percentile(steps, 99)),
                int(steps.max()),
                int((settled.flags[sure] & Flags.NOT_CONVERGED != 0).sum()),
            )


@dataclass(frozen=True)
class WordLength:
    """What formats of states and anchors cost.

    Attributes:
        state_bits: of a component of z, sign included, 1 being ``2**(bits - 2)``.
        anchor_bits: of a component of r, 1 being ``2**(bits - 1) - 1``.
        d_osc: components.
        settled_largest: the largest distance of z from where oscillators settle among the same
            rounded anchors: what the states' bits alone cost.
        state_rms: root mean square of the distance from where they settle among exact anchors.
        context_rms: root mean square of a context's error, in its int8 steps.
        context_p99: 99 % of the contexts are off by no more, in int8 steps.
    """

    state_bits: int
    anchor_bits: int
    d_osc: int
    settled_largest: float
    state_rms: float
    context_rms: float
    context_p99: float


@dataclass(frozen=True, eq=False)
class _Attention:
    """One head in floats: couplings in 15 bits, anchors, values, and what comes out exactly."""

    couplings: Reals
    anchors: Reals
    values: Reals
    states: Reals
    contexts: Reals


def word_lengths(
    heads: int = 32, seed: int = 0, components: Sequence[int] = (2, 8, 32)
) -> Iterator[WordLength]:
    """The table of word lengths: oscillator attention of relu couplings, 64 tokens and queries.

    Queries and keys are normal, values int8 of full range. Contexts are compared before they are
    rounded themselves.
    """
    for d_osc in components:
        rng = np.random.default_rng((seed, d_osc))
        drawn = [_attention(rng, d_osc) for _ in range(heads)]
        for anchor_bits in ANCHOR_BITS:
            for state_bits in STATE_BITS:
                errors = [_format_errors(head, state_bits, anchor_bits) for head in drawn]
                settled, states, contexts = map(np.concatenate, zip(*errors, strict=True))
                yield WordLength(
                    state_bits,
                    anchor_bits,
                    d_osc,
                    float(settled.max()),
                    _rms(states),
                    _rms(contexts),
                    float(np.percentile(np.abs(contexts), 99)),
                )


def _attention(rng: np.random.Generator, d_osc: int) -> _Attention:
    anchors = _directions(rng.standard_normal((TOKENS, d_osc)))
    q, k = rng.standard_normal((2, TOKENS, 16))
    w = np.maximum(q @ k.T, 0)
    values = rng.integers(-128, 128, (TOKENS, 16)).astype(np.float64)
    states = _directions(w @ anchors)
    rounded = np.rint(w * (LARGEST_COUPLING / w.max()))
    return _Attention(rounded, anchors, values, states, _read_out(states, anchors, values))


def _format_errors(
    head: _Attention, state_bits: int, anchor_bits: int
) -> tuple[Reals, Reals, Reals]:
    """Distances of z by its own bits, and by those of the anchors too; errors of the contexts."""
    unit, one = 2 ** (anchor_bits - 1) - 1, 2.0 ** (state_bits - 2)
    anchors = np.rint(unit * head.anchors) / unit
    directions = _directions(head.couplings @ anchors)
    states = np.rint(one * directions) / one
    step = np.abs(head.contexts).max() / 127
    return (
        np.linalg.norm(states - directions, axis=1),
        np.linalg.norm(states - head.states, axis=1),
        (_read_out(states, anchors, head.values) - head.contexts).ravel() / step,
    )


def _directions(fields: Reals) -> Reals:
    lengths = np.linalg.norm(fields, axis=-1, keepdims=True)
    unit: Reals = fields / np.where(lengths == 0, 1, lengths)
    return unit


def _read_out(states: Reals, anchors: Reals, values: Reals) -> Reals:
    """``(V + z M) / (T + z R)``."""
    means: Reals = (values.sum(axis=0) + states @ (anchors.T @ values)) / (
        TOKENS + states @ anchors.sum(axis=0)[:, None]
    )
    return means


def _rms(numbers: Reals) -> float:
    return float(np.sqrt(np.mean(numbers**2)))
