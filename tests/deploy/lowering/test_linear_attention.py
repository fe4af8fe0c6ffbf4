"""Linear attention in integers against double precision."""

from __future__ import annotations

import numpy as np
import pytest
from attention_cases import (
    KINDS,
    Numbers,
    Size,
    clipped,
    contexts,
    layer_of,
    linear_of,
    make_case,
    random_case,
    reals,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.interpreter import run_layer
from entrain.deploy.lowering.kernels.linear_attention import match_linear_attention

NO_WEIGHT = 1e-12  # below this a sum of weights counts as that much, as in models/attention
FEATURES = {
    "relu": lambda x, epsilon: np.maximum(x, 0.0) + epsilon,
    "elu": lambda x, _: np.where(x > 0.0, x + 1.0, np.exp(np.minimum(x, 0.0))),
}


def exact(case, feature="relu", epsilon=1 / 64):
    q, k, v = (reals(view, case.stored) for view in case.views)
    weights = FEATURES[feature](q, epsilon) @ FEATURES[feature](k, epsilon).transpose(0, 2, 1)
    total = np.maximum(weights.sum(axis=-1, keepdims=True), NO_WEIGHT)
    return clipped(case, weights @ v / total)


def error(case, **options):
    """How far the contexts are from exact ones, in steps of the output, its rounding included."""
    written = run_layer(layer_of(case, linear_of, **options), case.stored)
    return np.abs(contexts(case, written) - exact(case, **options)) / case.output.scale


@pytest.fixture
def random():
    return np.random.default_rng(5)


@pytest.mark.parametrize("feature", ["relu", "elu"])
def test_the_keyword_network_s_attention_is_as_exact_as_its_output(random, feature):
    case = make_case("a", Size(2, 49, 49, 16, 16), Numbers(step=0.03), random)
    every = error(case, feature=feature)
    assert np.sqrt((every**2).mean()) < 1.01 * (1 / 12) ** 0.5
    assert every.max() < 0.56


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["relu", "elu"]))
def test_any_case_is_within_a_step(seed, feature):
    case = random_case("a", np.random.default_rng(seed), farthest=40.0)
    ratio = case.value.value.scale / case.output.scale
    assert error(case, feature=feature).max() <= 0.5 + 0.3 * max(1.0, ratio)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("feature", ["relu", "elu"])
def test_extreme_inputs_are_within_a_step(random, kind, feature):
    case = make_case("a", Size(2, 9, 33, 16, 5), Numbers(step=0.03, kind=kind), random)
    assert error(case, feature=feature).max() < 0.7


def test_where_only_epsilon_is_left_of_a_query_all_features_count_alike(random):
    """A query below zero everywhere: relu + epsilon sees keys by the sum of their features."""
    case = make_case("a", Size(1, 5, 9, 8, 8), Numbers(), random)
    case.stored["a_q"][:] = -100
    assert error(case, epsilon=1e-9).max() < 0.6


def test_who_sees_nothing_reads_zero(random):
    """Without an epsilon, as in models: the sum of weights counts as 1e-12; no value is seen."""
    case = make_case("a", Size(1, 5, 9, 8, 8), Numbers(), random)
    case.stored["a_q"][:] = -100
    written = run_layer(layer_of(case, linear_of, epsilon=0.0), case.stored)
    assert np.all(written == case.output.zero_point)
    assert np.all(exact(case, epsilon=0.0) == 0.0)


def test_keys_that_hardly_have_a_feature_are_told_apart_all_the_same(random):
    """The shift of the moments follows the largest: small ones alone are as exact."""
    case = make_case("a", Size(1, 5, 9, 8, 8), Numbers(step=0.05), random)
    case.stored["a_k"][:] = random.integers(-128, -100, case.stored["a_k"].shape)
    assert error(case, feature="elu").max() < 4.0
    case.stored["a_k"][:] = random.integers(-50, -20, case.stored["a_k"].shape)
    assert error(case, feature="elu").max() < 0.6


def test_it_counts_the_multiply_adds_of_moments_and_what_is_read_of_them(random):
    case = make_case("a", Size(2, 5, 7, 3, 4), Numbers(), random)
    assert layer_of(case, linear_of).macs == 2 * 3 * (7 * 4 + 5 * 5)


def test_it_is_only_emitted_as_a_kernel(random):
    layer = layer_of(make_case("a", Size(), Numbers(), random), linear_of)
    with pytest.raises(LookupError, match="kernel"):
        _ = layer.expression.operator.compute
    assert match_linear_attention(layer) is not None


def test_a_step_of_contexts_out_of_proportion_is_refused(random):
    case = make_case("a", Size(), Numbers(output_step=1e-9), random)
    with pytest.raises(UnsupportedOperator, match="linear attention"):
        linear_of(case)
