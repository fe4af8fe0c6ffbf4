"""Averages weighted by softmax or by features, in integers, against double precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrain.deploy.arithmetic import feature_table, linear_average, softmax

seeds = st.integers(0, 2**32)


@settings(deadline=None)
@given(seeds, st.integers(1, 300), st.floats(0.1, 4.0))
def test_a_softmax_average_is_within_half_a_step_and_the_table(seed, keys, factor):
    random = np.random.default_rng(seed)
    scores = random.integers(-5000, 5001, (3, keys))
    values = random.integers(-128, 128, (keys, 4))
    integers = softmax(0.002, 5000, keys, 128, factor)
    weights = np.exp((scores - scores.max(axis=-1, keepdims=True)) * 0.002)
    exact = weights @ values / weights.sum(axis=-1, keepdims=True) * factor
    assert np.abs(integers.average(scores, values) - exact).max() <= 0.5 + 0.35 * factor


@given(st.integers(1, 2**22), st.integers(1, 255))
def test_sums_of_weighed_values_fit_32_bits(keys, value_reach):
    try:
        integers = softmax(0.002, 5000, keys, value_reach, 1.0)
    except OverflowError:
        assert keys * value_reach >= 2**22
        return
    assert keys * integers.exponential.largest * value_reach < 2**31


def test_values_beyond_their_reach_are_noticed():
    integers = softmax(0.002, 5000, 512, 128, 1.0)
    with pytest.raises(OverflowError):
        integers.average(np.zeros((1, 512), int), np.full((512, 1), 300))


@settings(deadline=None)
@given(seeds, st.integers(1, 200), st.integers(1, 128), st.floats(0.1, 4.0))
def test_a_linear_average_is_within_half_a_step_and_its_bits(seed, keys, features, factor):
    random = np.random.default_rng(seed)
    average, most_query, most_key = linear_average(features, keys, (-128, 127), factor)
    queries = random.integers(1, most_query + 1, (3, features))
    seen = random.integers(1, most_key + 1, (keys, features))
    values = random.integers(-128, 128, (keys, 4))
    weights = queries @ seen.T
    exact = weights @ values / weights.sum(axis=-1, keepdims=True) * factor
    # a moment is cut to 15 bits, at 128 of which a feature that is a 16th of the largest has 8
    assert np.abs(average.average(queries, seen, values) - exact).max() <= 0.5 + 0.3 * factor


@pytest.mark.parametrize("value_bits_of", [(-128, 127), (-255, 0), (0, 255), (-10, 245)])
def test_a_linear_average_s_sums_fit_their_types_at_the_extremes(value_bits_of):
    """Everything as large as it may be; each sum's range is checked where it is made."""
    low, high = value_bits_of
    average, most_query, most_key = linear_average(16, 49, value_bits_of, 1.0)
    for value in (low, high):
        values = np.full((49, 2), value)
        result = average.average(np.full((1, 16), most_query), np.full((49, 16), most_key), values)
        assert np.abs(result - value).max() <= 1


def test_only_zero_becomes_a_feature_of_zero():
    curve = np.zeros(256)
    curve[1], curve[2] = 1e-9, 10.0
    table = feature_table(curve, 4095)
    assert table[:3].tolist() == [0, 1, 4095]
    assert feature_table(np.zeros(256), 4095).max() == 0


def test_too_many_features_are_refused():
    with pytest.raises(OverflowError, match="features"):
        linear_average(2000, 49, (-128, 127), 1.0)
