"""Test vectors by seed: for the settling core, and for each of the attention blocks.

A vector is one query. Vectors that share anchors, keys and values form a trial, trials of one shape
a group: what is compiled for the first of them serves the others. Of every trial some vectors are
corners (no field, a weak one, antipodal anchors that cancel, equal ones with ``1 + z.r = 2``, full
scale, one token and the most), the others random over many orders of magnitude. Half of the trials
have random pauses on all streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np

from entrain.deploy.arithmetic import SeparableCoupling
from entrain.fpga.dynamics import Dynamics
from entrain.fpga.reference import (
    COUPLING_BITS,
    LARGEST_COUPLING,
    UNIT_STEPS,
    Integers,
    OscillatorBlock,
    SettlingCore,
    SoftmaxBlock,
)
from entrain.fpga.verification.instances import (
    SIGNED_REACH,
    Coupling,
    oscillator_block,
    random_anchors,
    settling_core,
    softmax_block,
)

Rng = np.random.Generator
FEW = 16  # vectors for which nothing is compiled


class Scales(TypedDict):
    """Steps of values and contexts."""

    value_scale: float
    context_scale: float


SCALES: Scales = {"value_scale": 0.03, "context_scale": 0.015}


@dataclass(frozen=True, eq=False)
class CoreTrial:
    """Vectors of one settling core.

    Attributes:
        name: in words.
        core: with its anchors.
        couplings: [vectors, T].
        pauses: seed of random pauses on the streams; 0 for none.
    """

    name: str
    core: SettlingCore
    couplings: Integers
    pauses: int = 0

    @property
    def vectors(self) -> int:
        """How many."""
        return len(self.couplings)

    def spelled(self, vector: int) -> str:
        """What goes into one of them."""
        return f"couplings {_short(self.couplings[vector])}"


@dataclass(frozen=True, eq=False)
class AttentionTrial:
    """Vectors of one attention block: sequences of some queries each.

    Attributes:
        name: in words.
        block: with its anchors, or its table.
        lanes: products of scores a cycle in the hardware.
        queries: [sequences, queries, d_head].
        keys: [sequences, T, d_head].
        values: [sequences, T, d_value].
        pauses: seed of random pauses on the streams; 0 for none.
        value_lanes: products of weights and values a cycle in the hardware of softmax.
    """

    name: str
    block: OscillatorBlock | SoftmaxBlock
    lanes: int
    queries: Integers
    keys: Integers
    values: Integers
    pauses: int = 0
    value_lanes: int = 2

    @property
    def vectors(self) -> int:
        """How many."""
        sequences, queries, _ = self.queries.shape
        return int(sequences * queries)

    def spelled(self, vector: int) -> str:
        """What goes into one of them."""
        sequence, query = divmod(vector, self.queries.shape[1])
        return (
            f"query {_short(self.queries[sequence, query])}, keys of sequence {sequence} beginning "
            f"with {_short(self.keys[sequence, 0])}, values {_short(self.values[sequence, 0])}"
        )


Blocks = list[tuple[str, OscillatorBlock | SoftmaxBlock]]
Maker = Callable[[Rng, "Shape"], Blocks]
Trial = CoreTrial | AttentionTrial
Group = tuple[Trial, ...]


@dataclass(frozen=True)
class Shape:
    """Sizes of a group, and which share of a block's vectors it has.

    Attributes:
        tokens: T.
        d_osc: components of an anchor.
        d_head: of a query.
        d_value: of a value.
        queries: of a sequence.
        lanes: products of scores a cycle.
        share: of the vectors; the first shape of a list has what the others leave.
    """

    tokens: int
    d_osc: int
    d_head: int = 16
    d_value: int = 16
    queries: int = 16
    lanes: int = 4
    share: float = 0.0


CORE_SHAPES = (
    Shape(64, 2),
    Shape(1, 2, share=0.02),
    Shape(128, 4, share=0.05),
    Shape(49, 8, share=0.05),
    Shape(64, 16, share=0.02),
    Shape(5, 32, share=0.02),
)
ATTENTION_SHAPES = (
    Shape(64, 2),
    Shape(1, 2, 4, 8, queries=8, lanes=2, share=0.02),
    Shape(128, 8, 8, 16, share=0.04),
    Shape(25, 32, 8, 8, queries=8, lanes=2, share=0.04),
)


def core_groups(
    vectors: int, seed: int, *, dynamics: Dynamics | None = None, shapes: tuple[Shape, ...]
) -> list[Group]:
    """Groups of trials of the settling core with exactly so many vectors together."""
    counts = _shared(vectors, shapes)
    made = []
    for index, (shape, count) in enumerate(zip(shapes, counts, strict=True)):
        rng = np.random.default_rng((seed, index))
        cores = list(_cores(rng, shape, dynamics))
        parts = _split(count, len(cores))
        made.append(
            tuple(
                CoreTrial(
                    _named(shape, name, pauses), core, couplings(rng, shape.tokens, part), pauses
                )
                for (name, core, pauses), part in zip(cores, parts, strict=True)
                if part
            )
        )
    return [group for group in made if group]


def attention_groups(
    vectors: int, seed: int, *, make: Maker, shapes: tuple[Shape, ...]
) -> list[Group]:
    """Groups of trials of an attention block, in whole sequences: not more than so many vectors.

    Args:
        vectors: how many at most; less by less than a sequence of each shape.
        seed: of everything random.
        make: blocks of a shape.
        shapes: of the groups.
    """
    made = []
    for index, (shape, count) in enumerate(zip(shapes, _shared(vectors, shapes), strict=True)):
        rng = np.random.default_rng((seed, index))
        blocks = make(rng, shape)
        parts = _split(count // shape.queries, len(blocks))
        made.append(
            tuple(
                _attention_trial(rng, shape, name, block, part, pauses)
                for pauses, ((name, block), part) in zip(
                    _pauses(len(blocks)), zip(blocks, parts, strict=True), strict=True
                )
                if part
            )
        )
    return [group for group in made if group]


def oscillators(coupling: Coupling) -> Maker:
    """Makes oscillator blocks of one coupling, for :func:`attention_groups`."""

    def make(rng: Rng, shape: Shape) -> Blocks:
        anchor_sets = _anchor_sets(rng, shape)
        made = oscillator_block(
            _strongest(shape),
            coupling=coupling,
            d_head=shape.d_head,
            score_scale=2.0**-10,
            epsilon=1e-3 if shape.tokens % 2 else 0.0,
            zero_point=-7,
            **SCALES,
        )
        return [
            (name, replace(made, anchors=r, bias=made.total.epsilon * r.sum(axis=0)))
            for name, r in anchor_sets.items()
        ]

    return make


def softmaxes(_rng: Rng, shape: Shape) -> Blocks:
    """Makes softmax blocks, flat and sharp ones, for :func:`attention_groups`."""
    reach = shape.d_head * SIGNED_REACH**2
    return [
        (
            f"logits up to {largest}",
            softmax_block(
                shape.tokens, d_head=shape.d_head, logit=largest / reach, zero_point=5, **SCALES
            ),
        )
        for largest in (150, 150, 4, 4)
    ]


def _cores(
    rng: Rng, shape: Shape, dynamics: Dynamics | None
) -> Iterator[tuple[str, SettlingCore, int]]:
    """Cores of one rounding, so that one compilation serves all; every other with pauses."""
    rounding = settling_core(_strongest(shape)).rounding
    anchor_sets = _anchor_sets(rng, shape)
    for pauses, (name, anchors) in zip(_pauses(len(anchor_sets)), anchor_sets.items(), strict=True):
        yield name, SettlingCore(anchors, rounding, dynamics), pauses


def _anchor_sets(rng: Rng, shape: Shape) -> dict[str, Integers]:
    """Anchors [T, d_osc] by their name."""
    tokens, components = shape.tokens, shape.d_osc
    first = random_anchors(rng, tokens, components)
    signs = np.where(np.arange(tokens) % 2, -1, 1)[:, None]
    axes = np.eye(components, dtype=np.int64)[np.arange(tokens) // 2 % components]
    return {
        "random anchors": first,
        "other random anchors": random_anchors(rng, tokens, components),
        "antipodal anchors": UNIT_STEPS * signs * axes,
        "equal anchors": np.repeat(random_anchors(rng, 1, components), tokens, axis=0),
    }


def _strongest(shape: Shape) -> Integers:
    """Anchors of which no sum of others is larger: for their settings no sum leaves its range."""
    one = np.zeros((1, shape.d_osc), np.int64)
    one[0, 0], one[0, 1] = UNIT_STEPS, UNIT_STEPS // 3  # rounding makes anchors a bit longer
    return np.repeat(one, shape.tokens, axis=0)


def couplings(rng: Rng, tokens: int, count: int) -> Integers:
    """Couplings [count, T]: corners, half of them at most, the others of all magnitudes."""
    one = np.eye(tokens, dtype=np.int64)
    full = np.full((1, tokens), LARGEST_COUPLING)
    pair = np.minimum(one + np.roll(one, 1, axis=1), 1)  # of antipodal anchors: no field
    corners = np.concatenate(
        [0 * full, full, full // LARGEST_COUPLING, pair, LARGEST_COUPLING * pair, one]
    )[: max(1, count // 2)]
    rows = (count - min(count, len(corners)), tokens)
    largest = 2 ** rng.integers(0, COUPLING_BITS + 1, (rows[0], 1)) - 1
    dense = rng.random(rows) < rng.choice([0.05, 0.5, 1.0], (rows[0], 1))
    random = np.floor(rng.random(rows) * (largest + 1)).astype(np.int64) * dense
    return np.concatenate([corners[:count], random])


def _attention_trial(
    rng: Rng,
    shape: Shape,
    name: str,
    block: OscillatorBlock | SoftmaxBlock,
    sequences: int,
    pauses: int,
) -> AttentionTrial:
    separable = isinstance(block, OscillatorBlock) and isinstance(block.coupling, SeparableCoupling)
    low, high = (0, 255) if separable else (-128, 127)
    size = (sequences, shape.tokens)
    return AttentionTrial(
        _named(shape, name, pauses),
        block,
        shape.lanes,
        _rows(rng, low, high, (sequences, shape.queries, shape.d_head)),
        _whole(_rows(rng, low, high, (*size, shape.d_head)), low, high, 1),
        _whole(_rows(rng, -128, 127, (*size, shape.d_value)), -128, 127, CORNERS),
        pauses,
    )


def _rows(rng: Rng, low: int, high: int, shape: tuple[int, int, int]) -> Integers:
    """Rows [sequences, rows, components] of all magnitudes, every eighth a corner."""
    steps = 2.0 ** -rng.integers(0, 8, (*shape[:2], 1))
    rows = np.rint(rng.integers(low, high + 1, shape) * steps).astype(np.int64)
    which = rng.integers(0, 8 * CORNERS, shape[:2])
    for number, corner in enumerate(_corner_rows(low, high, shape[2])):
        rows[which == number] = corner
    return rows


def _whole(rows: Integers, low: int, high: int, turn: int) -> Integers:
    """Of every 100 sequences in the first 25 all rows are one corner, another every ``turn``."""
    for number, corner in enumerate(_corner_rows(low, high, rows.shape[2])):
        sequences = np.arange(len(rows))
        rows[(sequences % 100 < CORNERS**2) & (sequences // turn % CORNERS == number)] = corner
    return rows


def _corner_rows(low: int, high: int, components: int) -> list[Integers]:
    """Nothing, ones, full scale of either sign, and of both in turns."""
    signs = np.where(np.arange(components) % 2, low, high)
    return [*(np.full(components, size) for size in (0, 1, low, high)), signs]


CORNERS = 5


def _pauses(trials: int) -> list[int]:
    """Seeds: none for every other trial."""
    return [number * (number % 2) for number in range(trials)]


def _named(shape: Shape, name: str, pauses: int) -> str:
    sizes = f"T = {shape.tokens}, d_osc = {shape.d_osc}"
    return f"{sizes}, {name}{', with pauses' if pauses else ''}"


def _shared(vectors: int, shapes: tuple[Shape, ...]) -> list[int]:
    """So many vectors a shape, none where that would be few; the first has what is left."""
    others = [int(vectors * shape.share) for shape in shapes[1:]]
    others = [count if count >= FEW else 0 for count in others]
    return [vectors - sum(others), *others]


def _split(count: int, parts: int) -> list[int]:
    """As even as can be, the first parts larger."""
    return [count // parts + (part < count % parts) for part in range(parts)]


def _short(numbers: Integers) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return f"[{shown}{', ...' if len(numbers) > 8 else ''}]"
