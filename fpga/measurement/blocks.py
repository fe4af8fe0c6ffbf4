"""The blocks to build, measure and compare: settings and stimuli as a network would have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from entrain.deploy.errors import UsageError
from entrain.fpga.dynamics import Dynamics
from entrain.fpga.reference import LARGEST_COUPLING, Integers, OscillatorBlock, SoftmaxBlock
from entrain.fpga.verification.instances import (
    SIGNED_REACH,
    UNSIGNED_REACH,
    WEIGHT_BITS,
    Coupling,
    oscillator_block,
    random_anchors,
    settling_core,
    softmax_block,
)
from entrain.fpga.verification.vectors import SCALES, AttentionTrial, CoreTrial, Trial

LARGEST_LOGIT = 8.0  # of queries and keys as long as they are drawn here, about
SPREAD = 40  # standard deviation of queries, keys and values, in steps


@dataclass(frozen=True)
class Sizes:
    """Of a block.

    Attributes:
        tokens: T, keys of a sequence, and queries.
        d_head: components of a query.
        d_value: components of a value.
        d_osc: components of an anchor.
        lanes: products of scores a cycle.
        value_lanes: products of weights and values a cycle, of softmax.
    """

    tokens: int = 64
    d_head: int = 16
    d_value: int = 16
    d_osc: int = 2
    lanes: int = 4
    value_lanes: int = 2


def block_named(name: str, sizes: Sizes, sequences: int = 2, seed: int = 0) -> Trial:
    """A block of these sizes, with sequences of normal queries, keys and values to run through it.

    Raises:
        UsageError: there is none of that name, or not of such sizes.
    """
    if name not in BLOCKS:
        raise UsageError(f"no block is called {name!r}", remedy=f"one of: {', '.join(BLOCKS)}")
    try:
        return BLOCKS[name](np.random.default_rng(seed), sizes, sequences)
    except OverflowError as error:
        raise UsageError(f"no {name} of such sizes: {error}") from error


def _settle(
    name: str, dynamics: Dynamics | None
) -> Callable[[np.random.Generator, Sizes, int], CoreTrial]:
    def make(rng: np.random.Generator, sizes: Sizes, sequences: int) -> CoreTrial:
        core = settling_core(random_anchors(rng, sizes.tokens, sizes.d_osc), dynamics=dynamics)
        shape = (sequences * sizes.tokens, sizes.tokens)
        given = np.maximum(rng.standard_normal(shape), 0) / 4
        couplings = np.rint(LARGEST_COUPLING * np.minimum(given, 1)).astype(np.int64)
        return CoreTrial(name, core, couplings)

    return make


def _oscillator(coupling: Coupling) -> Callable[[np.random.Generator, Sizes, int], AttentionTrial]:
    def make(rng: np.random.Generator, sizes: Sizes, sequences: int) -> AttentionTrial:
        block = oscillator_block(
            random_anchors(rng, sizes.tokens, sizes.d_osc),
            coupling=coupling,
            d_head=sizes.d_head,
            score_scale=2.0**-10,
            epsilon=1e-3,
            zero_point=0,
            **SCALES,
        )
        return _trial(rng, f"oscillator {coupling}", block, sizes, sequences)

    return make


def _softmax(
    name: str, weight_bits: int
) -> Callable[[np.random.Generator, Sizes, int], AttentionTrial]:
    def make(rng: np.random.Generator, sizes: Sizes, sequences: int) -> AttentionTrial:
        block = softmax_block(
            sizes.tokens,
            d_head=sizes.d_head,
            logit=LARGEST_LOGIT / (4 * sizes.d_head**0.5 * SPREAD**2),
            weight_bits=weight_bits,
            **SCALES,
        )
        return _trial(rng, name, block, sizes, sequences)

    return make


def _trial(
    rng: np.random.Generator,
    name: str,
    block: OscillatorBlock | SoftmaxBlock,
    sizes: Sizes,
    sequences: int,
) -> AttentionTrial:
    def drawn(components: int, low: int, high: int) -> Integers:
        numbers = rng.standard_normal((sequences, sizes.tokens, components))
        return np.clip(np.rint(SPREAD * numbers), low, high).astype(np.int64)

    low, high = (0, UNSIGNED_REACH) if name.endswith("separable") else (-128, SIGNED_REACH - 1)
    return AttentionTrial(
        name,
        block,
        sizes.lanes,
        drawn(sizes.d_head, low, high),
        drawn(sizes.d_head, low, high),
        drawn(sizes.d_value, -128, 127),
        value_lanes=sizes.value_lanes,
    )


# One line a block.
BLOCKS: dict[str, Callable[[np.random.Generator, Sizes, int], Trial]] = {
    "settle": _settle("settle", None),
    "settle by dynamics": _settle("settle by dynamics", Dynamics()),
    "oscillator relu": _oscillator("relu"),
    "oscillator separable": _oscillator("separable"),
    "softmax": _softmax("softmax", WEIGHT_BITS),
    # two products of weights and values a DSP block, as of queries and keys
    "softmax 8 bit": _softmax("softmax 8 bit", 8),
}
