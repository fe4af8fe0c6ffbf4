"""The C of oscillator attention is numpy to the bit: under sanitizers here, and on two boards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_programs import check, check_on_board, check_sanitized, run_again
from oscillator_cases import SCALE, Case

from entrain.deploy.lowering.functions import layer_function
from entrain.deploy.lowering.graph import Value
from entrain.deploy.lowering.kernels.oscillator_attention import laid_out

KEYWORD = {"heads": 2, "keys": 49, "d_head": 16}

# (case, type of queries, keys and values)
CASES = [
    (Case("relu", **KEYWORD), "int8"),
    (Case("separable", **KEYWORD), "int8"),
    (Case("separable", **KEYWORD, output="uint8", output_zero_point=130), "uint8"),
    (Case("softplus", **KEYWORD, epsilon=0.0), "int8"),
    (Case("elu", 1, 25, 32, 4, 2), "int8"),
    (Case("bell", 2, 6, 8, 3, 5, zero_point=9), "int8"),
    (Case("relu", 3, 10, 5, 3, queries=3, d_value=7, shared=True), "int8"),
    (Case("relu", 2, 20, 16, zero_point=111), "uint8"),
    (Case("relu", 1, 7, 20, 16, 3, queries=1, apart=True, zero_point=-4), "int8"),
    (Case("relu", 1, 12, 40, 1, output="uint8", output_zero_point=7), "int8"),
    (Case("separable", 2, 9, 18, 5, 8, d_value=3, zero_point=11), "int8"),
    (Case("separable", 1, 33, 7, 33, zero_point=200, shared=True), "uint8"),
    (Case("separable", 1, 4, 4, 64, apart=True, epsilon=0.0), "int8"),
    (Case("softplus", 1, 1, 4, 2), "uint8"),
    (Case("relu", 1, 300, 2, 2, queries=2, epsilon=0.0), "int8"),
    (Case("relu", 1, 8, 1, 2, output_scale=3.0), "int8"),
]
EXTREMES = ["either", "lowest", "highest", "nothing"]


def layers_of(cases):
    layers = []
    for number, (case, dtype) in enumerate(cases):
        name = f"source_{number}"
        source = Value(name, (case.size,), dtype, SCALE, case.zero_point, name)
        layers.append(case.layer(source, f"context_{number}"))
    return layers


def stored_for(cases, kind, seed=0):
    random = np.random.default_rng(seed)
    stored = {}
    for number, (case, dtype) in enumerate(cases):
        limits = np.iinfo(dtype)
        stored[f"source_{number}"] = {
            "random": random.integers(limits.min, limits.max, case.size, endpoint=True),
            "either": random.choice([limits.min, limits.max], case.size),
            "lowest": np.full(case.size, limits.min),
            "highest": np.full(case.size, limits.max),
            "nothing": np.full(case.size, case.zero_point),
        }[kind].astype(dtype)
    return stored


FORMS = {"scalar": (), "dsp": ("-DENTRAIN_EMULATE_DSP",)}


@pytest.mark.parametrize("form", FORMS)
def test_c_is_numpy_to_the_bit_under_sanitizers(tmp_path, form):
    """Random inputs, then all at an end of their type, at either end, and no score at all."""
    layers, stored = layers_of(CASES), stored_for(CASES, "random")
    check_sanitized(tmp_path, layers, stored, *FORMS[form])
    for kind in EXTREMES:
        stored = stored_for(CASES, kind)
        check(run_again(tmp_path, layers, stored), layers, stored)


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_boards_are_numpy_to_the_bit(tmp_path, board):
    check_on_board(tmp_path, board, layers_of(CASES), stored_for(CASES, "random"))


# Instructions of the attention core at the keyword network's size, as promised.
PROMISED = {
    ("mps2-an386", "relu"): 180_000,
    ("mps2-an386", "separable"): 60_000,
    ("mps3-an547", "relu"): 80_000,
    ("mps3-an547", "separable"): 40_000,
}


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_the_core_takes_no_more_instructions_than_promised(tmp_path, board):
    cases = [(Case(coupling, **KEYWORD), "int8") for coupling in ("relu", "separable")]
    layers = layers_of(cases)
    counts = check_on_board(tmp_path, board, layers, stored_for(cases, "random"))
    for layer, (case, _) in zip(layers, cases, strict=True):
        assert 0 < counts[layer.symbol] <= PROMISED[board, case.coupling]


@st.composite
def small_cases(draw):
    dtype = draw(st.sampled_from(["int8", "uint8"]))
    limits = np.iinfo(dtype)
    case = Case(
        draw(st.sampled_from(["relu", "softplus", "separable", "bell"])),
        draw(st.integers(1, 2)),
        draw(st.integers(1, 18)),
        draw(st.integers(1, 36)),
        draw(st.integers(1, 9)),
        draw(st.sampled_from([1, 2, 3])),
        draw(st.integers(1, 5)),
        draw(st.integers(1, 9)),
        draw(st.sampled_from([0, limits.min, limits.max, 5])),
        draw(st.sampled_from([0.0, 1e-3])),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from(["int8", "uint8"])),
        draw(st.integers(0, 127)),
    )
    return case, dtype


def check_any(folder, cases, kind, seed):
    layers, stored = layers_of(cases), stored_for(cases, kind, seed)
    for form, options in FORMS.items():
        check_sanitized(folder(form), layers, stored, *options)


some_cases = st.lists(small_cases(), min_size=4, max_size=4)
kinds = st.sampled_from(["random", *EXTREMES])


@settings(deadline=None, max_examples=2)
@given(some_cases, kinds, st.integers(0, 99))
def test_any_shape_is_numpy_to_the_bit(tmp_path_factory, cases, kind, seed):
    check_any(tmp_path_factory.mktemp, cases, kind, seed)


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(some_cases, kinds, st.integers(0, 99))
def test_many_shapes_are_numpy_to_the_bit(tmp_path_factory, cases, kind, seed):
    check_any(tmp_path_factory.mktemp, cases, kind, seed)


def test_anchors_lie_two_tokens_of_two_components_together():
    anchors = np.arange(3 * 3, dtype=np.int8).reshape(1, 3, 3)
    first, second = laid_out(anchors)[0]
    assert first.dtype == np.int16
    np.testing.assert_array_equal(first[:2], [[[0, 3], [1, 4]], [[6, 0], [7, 0]]])
    np.testing.assert_array_equal(second[:2], [[[2, 5], [0, 0]], [[8, 0], [0, 0]]])
    assert len(first) == len(second) == 4
    assert not first[2:].any()


def scratch(keys, coupling, exponent):
    case = Case(coupling, 1, keys, 16, 2, exponent)
    return layer_function(layers_of([(case, "int8")])[0]).scratch_bytes


@pytest.mark.parametrize("coupling", ["relu", "softplus", "separable"])
@pytest.mark.parametrize("exponent", [1, 2])
def test_nothing_of_the_size_of_all_pairs_is_kept(coupling, exponent):
    assert scratch(128, coupling, exponent) <= 2 * scratch(64, coupling, exponent)


def test_separable_couplings_keep_nothing_of_the_size_of_the_tokens():
    assert scratch(1000, "separable", 1) == scratch(10, "separable", 1)
