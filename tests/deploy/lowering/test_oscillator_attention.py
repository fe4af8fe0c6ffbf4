"""Oscillator attention in integers against its formula in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oscillator_cases import STEP, Case, computed, source_of

from entrain.deploy.arithmetic import FieldStrength, plain_read_out
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Product

COUPLINGS = ["relu", "softplus", "elu", "separable", "bell"]


def differences(case, stored, dtype="int8"):
    """From the formula, in steps of the result."""
    source = source_of(case, dtype)
    expected = case.formula(source, stored)
    limits = np.iinfo(case.output)
    return np.abs(computed(case.node(source), stored) - np.clip(expected, limits.min, limits.max))


def random_values(case, spread=30.0, dtype="int8", seed=0):
    limits = np.iinfo(dtype)
    random = np.random.default_rng(seed)
    values = random.normal(case.zero_point, spread, case.size)
    return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("d_osc", [2, 3, 4, 8, 16])
@pytest.mark.parametrize(("heads", "keys", "d_head"), [(2, 49, 16), (1, 6, 32), (4, 25, 8)])
def test_the_factorised_read_out_is_the_formula_rounded(coupling, d_osc, heads, keys, d_head):
    case = Case(coupling, heads, keys, d_head, d_osc)
    wrong = differences(case, random_values(case))
    # half a step is what rounding costs; where couplings nearly cancel their own rounding shows
    assert wrong.mean() < 0.28
    assert np.quantile(wrong, 0.99) < 0.7
    assert wrong.max() < 3.0


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("exponent", [2, 3, 4, 8])
def test_the_plain_read_out_is_the_formula_rounded(coupling, exponent):
    case = Case(coupling, 2, 49, 16, 2, exponent, output_scale=0.025)
    wrong = differences(case, random_values(case))
    assert wrong.mean() < 0.3
    assert np.quantile(wrong, 0.99) < 1.5


@pytest.mark.parametrize("exponent", [1, 2, 5, 16, 100])
def test_any_whole_exponent_is_as_exact_as_the_others_with_exact_couplings(exponent):
    case = Case("separable", 2, 49, 16, 2, exponent, output_scale=0.05)
    assert differences(case, random_values(case)).max() < 0.6


@pytest.mark.parametrize("zero_point", [-128, -7, 11, 127])
@pytest.mark.parametrize("coupling", ["relu", "softplus", "separable"])
def test_zero_points_come_off_first(coupling, zero_point):
    case = Case(coupling, zero_point=zero_point, output_scale=0.1)
    assert differences(case, random_values(case)).max() < 1.0


def test_bytes_without_a_sign_are_read_and_written():
    case = Case("separable", 2, 20, 16, output="uint8", output_zero_point=0, output_scale=0.05)
    wrong = differences(case, random_values(case, 100.0, "uint8"), "uint8")
    assert wrong.max() < 0.6


def test_queries_and_values_have_extents_of_their_own():
    case = Case("relu", 3, 25, 10, queries=1, d_value=5, shared=True, apart=True)
    assert differences(case, random_values(case)).max() < 1.0


@st.composite
def cases(draw):
    return Case(
        draw(st.sampled_from(COUPLINGS)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 30)),
        draw(st.integers(1, 20)),
        draw(st.integers(2, 16)),
        draw(st.sampled_from([1, 1, 2, 3, 8])),
        zero_point=draw(st.integers(-128, 127)),
        epsilon=draw(st.sampled_from([0.0, 1e-6, 1e-3, 0.3])),
        shared=draw(st.booleans()),
        output_scale=draw(st.sampled_from([0.01, 0.05, 1.0])),
    )


@settings(deadline=None)
@given(cases(), st.sampled_from(["random", "extreme", "lowest", "highest", "zero"]), st.integers(0))
def test_no_sum_leaves_its_range_whatever_the_input(case, kind, seed):
    """The reference asserts every range; contexts stay within the values' own range."""
    random = np.random.default_rng(seed % 2**32)
    stored = {
        "random": random.integers(-128, 128, case.size),
        "extreme": random.choice([-128, 127], case.size),
        "lowest": np.full(case.size, -128),
        "highest": np.full(case.size, 127),
        "zero": np.full(case.size, case.zero_point),
    }[kind].astype(np.int8)
    source = source_of(case)
    result = computed(case.node(source), stored)
    values = (stored.astype(int) - case.zero_point) * source.scale / case.result("").scale
    reach = np.asarray([np.floor(values.min()) - 4, np.ceil(values.max()) + 4])
    low, high = np.clip(reach + case.output_zero_point, -128, 127)
    assert low <= result.min() <= result.max() <= high


@pytest.mark.parametrize("coupling", ["relu", "separable", "bell"])
def test_without_couplings_every_value_counts_alike(coupling):
    """No field: z = 0, so that a_ij = 1/T."""
    case = Case(coupling, 1, 10, 4, epsilon=0.0)
    stored = random_values(case)
    stored[: 2 * 10 * 4] = 0
    node = case.node(source_of(case), function=lambda s: np.where(s == 0.0, 0.0, 1.0))
    if coupling != "bell":
        node = case.node(source_of(case))
    constants = [operand.operator.reference() for operand in node.operands[3:]]
    strengths = node.operator.strengths(stored, stored, *constants)
    assert (strengths == FieldStrength.ZERO).all()
    _, _, value = case.reals(source_of(case), stored)
    mean = value.mean(axis=1) / case.result("").scale + case.output_zero_point
    assert np.abs(computed(node, stored) - mean).max() <= 0.51


def test_epsilon_alone_settles_at_the_sum_of_the_anchors():
    case = Case("relu", 1, 10, 4, 3)
    stored = random_values(case)
    stored[: 2 * 10 * 4] = 0
    assert differences(case, stored).max() < 0.51


def test_a_field_that_is_all_rounding_is_weak():
    case = Case("relu", 1, 16, 16, epsilon=0.0)
    node = case.node(source_of(case))
    stored = np.zeros(case.size, np.int8)
    stored[0 : 16 * 16 : 16] = 3  # every query against the first key: a score of 3 x 2
    stored[16 * 16] = 2
    constants = [operand.operator.reference() for operand in node.operands[3:]]
    strengths = node.operator.strengths(stored, stored, *constants)
    assert (strengths == FieldStrength.WEAK).all()


def test_antipodal_anchors_leave_no_weight_to_the_far_one():
    """One key is all that couples, and the other anchor lies opposite to its own."""
    case = Case("relu", 1, 2, 2, epsilon=0.0, output_scale=0.05, output_zero_point=0)
    anchors = np.asarray([[[126, 0], [-126, 0]]], np.int8)
    stored = np.asarray([9, 0, 9, 0, 100, 0, -100, 0, 50, -50, 7, 7], np.int8)
    for exponent in (1, 4):
        node = replace(case, exponent=exponent).node(source_of(case), anchors=anchors)
        np.testing.assert_array_equal(computed(node, stored), [[50, -50], [50, -50]])


@settings(deadline=None)
@given(st.integers(1, 64), st.integers(1, 40), st.integers(0, 2**32))
def test_the_nearest_anchor_has_nearly_all_bits_of_a_weight(exponent, keys, seed):
    random = np.random.default_rng(seed)
    angles = random.uniform(0, 2 * np.pi, keys)
    anchors = np.rint(126 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)).astype(int)
    plain = plain_read_out(
        anchors[None], exponent=exponent, anchor_scale=STEP, value_peak=128, factor=1.0
    )
    nearest = np.rint(anchors[:1] / 126 * 2**14).astype(int)
    weights = plain.weights(nearest[None], anchors[None])
    assert weights.max() >= 2**plain.bits * (1 - exponent * 2**-13) - 1
    assert weights.max() < 2**plain.bits


def test_it_says_how_much_it_multiplies():
    def macs(coupling, exponent):
        node = Case(coupling, 2, 49, 16, 2, exponent).node(source_of(Case(coupling, 2, 49, 16)))
        assert isinstance(node.operator, Product)
        return node.operator.macs(*node.operands)

    assert macs("separable", 1) == 2 * (98 * 16 * 2 + 98 * 2 * 16 + 49 * 2)
    assert macs("relu", 1) == 2 * (49 * 49 * 18 + 98 * 2 * 16 + 49 * 2)
    assert macs("relu", 2) == 2 * (49 * 49 * 18 + 49 * 49 * (2 + 1 + 16))


def test_it_has_no_tensorir():
    node = Case("relu").node(source_of(Case("relu")))
    with pytest.raises(LookupError, match="kernel"):
        node.operator.compute("context")


LONG = np.full((2, 9, 2), 120, np.int8)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"anchors": LONG}, "length 1.34"),
        ({"anchors": np.zeros((2, 9, 2), np.int8)}, "length 0"),
        ({"anchors": np.ones((2, 8, 2), np.int8)}, "2 heads of 9 keys"),
        ({"anchors": np.ones((2, 9, 65), np.int8)}, "anchors"),
        ({"anchors": np.ones((2, 9, 2), np.int16)}, "int16"),
        ({"coupling": "cosine"}, "cosine"),
        ({"epsilon": 1e9}, "32 bits"),
        ({"exponent": 2000}, "32 bits"),
        ({"exponent": 0}, "32 bits"),
        ({"coupling": "sine", "function": np.sin}, "32 bits"),
        ({"score_scale": 1e12, "coupling": "softplus"}, "32 bits"),
    ],
)
def test_what_cannot_be_proved_is_refused_with_a_remedy(changes, what):
    case = Case("relu")
    with pytest.raises(UnsupportedOperator, match=what) as caught:
        case.node(source_of(case), **changes)
    assert caught.value.remedy


def test_an_output_step_that_is_out_of_proportion_is_refused():
    case = Case("relu", output_scale=1e-9)
    with pytest.raises(UnsupportedOperator, match="32 bits"):
        case.node(source_of(case))
