"""Blocks from anchors and scales: the integers that the lowering would choose for one head.

Queries and keys are int8, those of the separable coupling uint8, values int8, all with the zero
point 0.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from entrain.deploy.arithmetic import (
    IntArray,
    RectifiedCoupling,
    SeparableCoupling,
    Softmax,
    exponential,
    factorised_read_out,
    field_sum,
    quotient,
    rectified_coupling,
    softmax,
    weight_bits,
)
from entrain.fpga.dynamics import Dynamics
from entrain.fpga.reference import UNIT_STEPS, Integers, OscillatorBlock, SettlingCore, SoftmaxBlock

Coupling = Literal["relu", "separable"]

WEIGHT_BITS = 15
SIGNED_REACH = 128
UNSIGNED_REACH = 255


def random_anchors(rng: np.random.Generator, tokens: int, components: int) -> Integers:
    """Anchors of unit length, of all directions alike: codes [tokens, components] of 1/127."""
    directions = rng.standard_normal((tokens, components))
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    codes: Integers = np.rint(UNIT_STEPS * directions / lengths).astype(np.int64)
    return codes


def settling_core(anchors: IntArray, *, dynamics: Dynamics | None = None) -> SettlingCore:
    """The settling core of couplings that were each rounded to the nearest step.

    Args:
        anchors: codes [T, d_osc].
        dynamics: the scheme; None: the closed form.

    Raises:
        OverflowError: too many anchors or components.
    """
    return SettlingCore(anchors, _pull(anchors) // 2 + 1, dynamics)


def oscillator_block(
    anchors: IntArray,
    *,
    coupling: Coupling,
    d_head: int,
    score_scale: float,
    epsilon: float,
    value_scale: float,
    context_scale: float,
    zero_point: int = 0,
) -> OscillatorBlock:
    """Oscillator attention whose sums all fit, whatever comes in.

    Args:
        anchors: codes [T, d_osc], of unit length but for rounding.
        coupling: ``relu`` of int8 queries and keys, or ``separable`` of uint8 ones.
        d_head: components of a query.
        score_scale: the real score that one step of ``q.k`` stands for.
        epsilon: what is added to every real coupling, 0 or more.
        value_scale: step of the values.
        context_scale: step of the contexts.
        zero_point: of the contexts.

    Raises:
        OverflowError: the integers may grow too large.
    """
    codes = np.asarray(anchors, np.int64)
    pull = _pull(codes)
    made: RectifiedCoupling | SeparableCoupling
    if coupling == "relu":
        bits = weight_bits(pull)
        made = rectified_coupling(d_head * SIGNED_REACH**2, bits)
        unit, peak = score_scale * 2**made.shift, (2**bits - 1) * pull
    else:
        most = d_head * UNSIGNED_REACH
        made = SeparableCoupling(weight_bits(most))
        unit, peak = score_scale, most << made.bits
    sums = codes.sum(axis=0)
    total = field_sum(peak, epsilon / unit, int(np.abs(sums).max()))
    read_out = factorised_read_out(
        codes[None],
        anchor_scale=1 / UNIT_STEPS,
        value_peak=SIGNED_REACH,
        factor=value_scale / context_scale,
    )
    return OscillatorBlock(codes, total.epsilon * sums, made, total, read_out, zero_point)


def softmax_block(
    tokens: int,
    *,
    d_head: int,
    logit: float,
    value_scale: float,
    context_scale: float,
    zero_point: int = 0,
    weight_bits: int = WEIGHT_BITS,
) -> SoftmaxBlock:
    """Softmax attention of int8 queries and keys whose sums all fit.

    Args:
        tokens: T.
        d_head: components of a query.
        logit: the natural logarithm that one step of ``q.k`` stands for, > 0.
        value_scale: step of the values.
        context_scale: step of the contexts.
        zero_point: of the contexts.
        weight_bits: of a weight before it is divided. 15 is the microcontroller's; with 8, two
            products of weights and values fit one DSP block.

    Raises:
        OverflowError: the integers may grow too large.
    """
    reach, factor = d_head * SIGNED_REACH**2, value_scale / context_scale
    if weight_bits == WEIGHT_BITS:
        return SoftmaxBlock(softmax(logit, reach, tokens, SIGNED_REACH, factor), zero_point)
    largest = 2**weight_bits - 1
    weights = exponential(logit, reach, largest)
    return SoftmaxBlock(Softmax(weights, quotient(factor, largest, tokens * largest)), zero_point)


def _pull(anchors: IntArray) -> int:
    """The largest magnitude of a sum of anchor codes, each with its own sign."""
    return int(np.abs(np.asarray(anchors, np.int64)).sum(axis=0).max())
