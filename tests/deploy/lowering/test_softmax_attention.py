"""Softmax attention in integers against double precision, and its C against numpy."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from attention_cases import (
    KINDS,
    Numbers,
    Size,
    clipped,
    contexts,
    layer_of,
    make_case,
    random_case,
    reals,
    softmax_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.interpreter import run_layer
from entrain.deploy.lowering.kernels.softmax_attention import match_softmax_attention
from entrain.deploy.lowering.operators.softmax_attention import softmax_attention


def exact(case, score_scale=None, base=np.e):
    scale = case.query.shape[2] ** -0.5 if score_scale is None else score_scale
    q, k, v = (reals(view, case.stored) for view in case.views)
    scores = q @ k.transpose(0, 2, 1) * scale * log(base)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return clipped(case, weights @ v / weights.sum(axis=-1, keepdims=True))


def error(case, **options):
    """How far the contexts are from exact ones, in steps of the output, its rounding included."""
    written = run_layer(layer_of(case, softmax_of, **options), case.stored)
    return np.abs(contexts(case, written) - exact(case, **options)) / case.output.scale


@pytest.fixture
def random():
    return np.random.default_rng(4)


def test_the_keyword_network_s_attention_is_as_exact_as_its_output(random):
    """T = 49, two heads of 16: the error is that of rounding to 8 bits, and next to no more."""
    errors = []
    for step in (0.01, 0.03, 0.05):
        case = make_case("a", Size(2, 49, 49, 16, 16), Numbers(step=step), random)
        errors.append(error(case))
    every = np.concatenate(errors)
    rounding = (1 / 12) ** 0.5
    assert np.sqrt((every**2).mean()) < 1.02 * rounding
    assert every.max() < 0.75
    assert every.mean() < 0.255


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_any_case_is_within_a_step(seed):
    """Half a step is the rounding; weights, at 2048 to a table, add a third of one at most."""
    case = random_case("a", np.random.default_rng(seed))
    ratio = case.value.value.scale / case.output.scale
    assert error(case).max() <= 0.5 + 0.35 * max(1.0, ratio)


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_inputs_are_within_a_step(random, kind):
    """All equal: the mean of the values. One dominant: its value. Saturated: logits of 127."""
    case = make_case("a", Size(2, 9, 33, 16, 5), Numbers(step=0.044, kind=kind), random)
    assert error(case).max() < 0.8


def test_scores_that_may_reach_far_widen_the_step_of_the_table(random):
    """Here they may reach 2600: a step is 0.085, and an average of two values known less well."""
    case = make_case("a", Size(1, 12, 20, 16, 16), Numbers(step=0.2, kind="saturated"), random)
    assert 0.5 < error(case).max() < 4.0


def test_the_step_of_the_table_follows_scores_that_hardly_differ(random):
    case = make_case("a", Size(2, 9, 33, 16, 16), Numbers(step=1e-4), random)
    assert error(case).max() < 0.53


def test_base_two_is_powers_of_two(random):
    case = make_case("a", Size(2, 9, 33, 16, 16), Numbers(step=0.05), random)
    assert error(case, base=2.0).max() < 0.8


def test_it_counts_the_multiply_adds_of_scores_and_averages(random):
    case = make_case("a", Size(2, 5, 7, 3, 4), Numbers(), random)
    assert layer_of(case, softmax_of).macs == 2 * 5 * 7 * (3 + 4)


def test_it_is_only_emitted_as_a_kernel(random):
    layer = layer_of(make_case("a", Size(), Numbers(), random), softmax_of)
    with pytest.raises(LookupError, match="kernel"):
        _ = layer.expression.operator.compute
    assert match_softmax_attention(layer) is not None


@pytest.mark.parametrize(
    ("numbers", "scale"),
    [(Numbers(step=300.0), 1.0), (Numbers(output_step=1e-9), 1.0)],
    ids=["scores farther than a table reaches", "contexts beyond 32 bits"],
)
def test_what_cannot_be_proved_is_refused(random, numbers, scale):
    case = make_case("a", Size(), numbers, random)
    with pytest.raises(UnsupportedOperator, match="softmax attention"):
        softmax_of(case, scale)


def test_channels_that_lie_apart_are_refused(random):
    case = make_case("a", Size(), Numbers(), random)
    with pytest.raises(UnsupportedOperator, match="side by side"):
        softmax_attention(
            *case.views, score_scale=1.0, output=case.output, output_strides=(1, 16, 2)
        )
