"""Settled oscillators in integers: bounds, the fields that are too small, and the C of it."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import entrain.firmware
from entrain.deploy.arithmetic import FieldStrength, field_strength, settle
from entrain.deploy.arithmetic.settling import (
    INVERSE_ROOT_ERROR,
    STATE_ONE,
    inverse_root,
    longest_state,
    square_guard,
    state_error,
)

INT32 = np.iinfo(np.int32)
KERNELS = Path(entrain.firmware.__file__).parent / "kernels"

WRAPPER = """
#include "entrain_settling.h"
void settle(int32_t *fields, int16_t *states, int32_t count, int32_t components);
void settle(int32_t *fields, int16_t *states, int32_t count, int32_t components) {
    for (int32_t i = 0; i < count; i++) {
        entrain_settle(fields + i * components, states + i * components, components);
    }
}
"""


counts = st.integers(1, 64)
widths = st.integers(0, 31)


def fields(components=counts, bits=widths):
    """Vectors of any size, and the corners of the integers."""

    def vector(count, width):
        corner = st.sampled_from([INT32.min, INT32.max, 0, 1, -1])
        within = st.integers(max(INT32.min, -(2**width)), min(INT32.max, 2**width))
        return arrays.arrays(np.int64, count, elements=st.one_of(within, corner))

    return st.tuples(components, bits).flatmap(lambda drawn: vector(*drawn))


def exact(h):
    length = np.linalg.norm(h.astype(np.longdouble), axis=-1, keepdims=True)
    return np.divide(h, length, out=np.zeros(h.shape, np.longdouble), where=length > 0)


def test_the_inverse_root_keeps_its_bound_for_every_argument():
    x = np.arange(2**14, 2**16 + 1)
    y = inverse_root(x)
    assert np.abs(y / 2**15 * np.sqrt(x / 2**16) - 1).max() <= INVERSE_ROOT_ERROR
    assert y.max() < 2**16


@given(fields())
def test_states_keep_their_bound_and_no_intermediate_leaves_its_range(h):
    z = settle(h)
    assert np.abs(z / STATE_ONE - exact(h)).max() <= state_error(h.size)
    assert np.linalg.norm(z.astype(float)) <= longest_state(h.size)


@pytest.mark.parametrize("components", [1, 2, 3, 4, 15, 16, 63, 64])
@pytest.mark.parametrize("sign", [1, -1])
def test_squares_fit_when_every_component_is_as_large_as_it_can_be(components, sign):
    assert components * 2**30 < 2 ** (32 + square_guard(components))
    z = settle(np.full(components, INT32.max if sign > 0 else INT32.min))
    assert np.abs(z / STATE_ONE - sign / np.sqrt(components)).max() <= state_error(components)


@given(fields(bits=st.integers(0, 30)).filter(lambda h: np.abs(h).max() < 2**30))
def test_only_the_direction_of_a_field_matters(h):
    np.testing.assert_array_equal(settle(2 * h), settle(h))


@given(fields().filter(lambda h: h.min() > INT32.min))
def test_the_opposite_field_settles_at_the_opposite_state(h):
    assert np.abs(settle(-h) + settle(h)).max() <= 2


def test_no_field_settles_at_zero():
    assert not settle(np.zeros((3, 2), np.int32)).any()


def test_the_smallest_field_settles_exactly():
    np.testing.assert_array_equal(settle(np.asarray([[0, -1], [1, 0]])), [[0, -16384], [16384, 0]])


def test_a_field_that_rounding_may_have_made_is_weak():
    h = np.asarray([[0, 0], [3, -2], [4, 0], [INT32.min, 0]])
    strengths = [FieldStrength.ZERO, FieldStrength.WEAK, FieldStrength.STRONG, FieldStrength.STRONG]
    np.testing.assert_array_equal(field_strength(h, 3), strengths)


@pytest.mark.parametrize("h", [[2**31, 0], [0, -(2**31) - 1]])
def test_a_field_of_more_than_32_bits_is_refused(h):
    with pytest.raises(OverflowError, match="a field"):
        settle(np.asarray(h))


def test_more_than_64_components_are_refused():
    with pytest.raises(OverflowError, match="65 components"):
        settle(np.ones(65, np.int32))


@pytest.fixture(scope="module")
def in_c(tmp_path_factory):
    folder = tmp_path_factory.mktemp("settling")
    (folder / "settle.c").write_text(WRAPPER)
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-shared", "-fPIC"]
    flags += ["-fsanitize=undefined", "-fno-sanitize-recover=all", f"-I{KERNELS}"]
    library = folder / "settle.so"
    subprocess.run(["cc", *flags, str(folder / "settle.c"), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library)).settle


@pytest.mark.parametrize("components", [1, 2, 3, 4, 7, 16, 64])
def test_c_is_numpy_to_the_bit(in_c, components):
    random = np.random.default_rng(components)
    bits = random.integers(0, 32, (4000, 1))
    h = np.rint(random.uniform(-1, 1, (4000, components)) * 2.0**bits).clip(INT32.min, INT32.max)
    h[:500] = random.choice([INT32.min, INT32.max, 0, 1, -1], (500, components))
    given_fields = h.astype(np.int32)
    states = np.zeros(h.shape, np.int16)
    expected = settle(given_fields)
    in_c(
        given_fields.ctypes.data_as(ctypes.c_void_p),
        states.ctypes.data_as(ctypes.c_void_p),
        len(h),
        components,
    )
    np.testing.assert_array_equal(states, expected)
