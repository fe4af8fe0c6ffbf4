"""Inverse roots, quotients and interpolation against exact arithmetic; their C against numpy."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from c_library import compile_c
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.arithmetic import (
    interpolate,
    reciprocal_factor,
    reciprocal_root,
    root_factor,
    scaled,
)
from entrain.deploy.arithmetic.ratios import FACTOR_ERROR, LARGEST_FRACTION, LARGEST_LIMIT
from entrain.deploy.arithmetic.roots import RECIPROCAL_ROOT_ERROR

INT32_MAX = 2**31 - 1
squares = st.integers(1, 63).flatmap(lambda bits: st.integers(2 ** (bits - 1), 2**bits - 1))
divisors = st.integers(-INT32_MAX, INT32_MAX) | st.integers(-9, 9)
numerators = st.integers(-(2**31), INT32_MAX)
fractions = st.integers(0, LARGEST_FRACTION)
limits = st.integers(1, LARGEST_LIMIT)


def one(x):
    return np.asarray([x], np.int64)


def value_of(factor: int) -> Fraction:
    return Fraction(int(factor) >> 6) / 2 ** ((int(factor) & 63) - 15)


def error_of_root(r: int, e: int, s: int) -> Fraction:
    """How far ``r * 2**-e`` is from ``1/sqrt(s)``, relative, bounded from above."""
    squared = Fraction(int(r) ** 2 * s, 4 ** int(e))
    # |x - 1| <= |x^2 - 1| / (1 + x), and x is nearly 1
    root = Fraction(isqrt(int(squared * 10**30)), 10**15)
    return abs(squared - 1) / (1 + root)


def test_every_leading_16_bits_give_an_inverse_root_within_its_bound():
    m = np.arange(2**14, 2**16, dtype=np.int64)
    for s in (m << 16, (m << 16) + 2**16 - 1, m << 47):
        r, e = reciprocal_root(s)
        off = np.abs(r.astype(float) * 2.0**-e * np.sqrt(s.astype(float)) - 1.0)
        assert off.max() < RECIPROCAL_ROOT_ERROR


@given(squares)
def test_an_inverse_root_is_within_its_bound(s):
    (r,), (e,) = reciprocal_root(one(s))
    assert error_of_root(r, e, s) < RECIPROCAL_ROOT_ERROR + 1e-12
    assert 2**15 <= r <= 2**16
    assert 16 <= e <= 47


@pytest.mark.parametrize("s", [0, -4])
def test_an_inverse_root_of_nothing_positive_is_refused(s):
    with pytest.raises(OverflowError, match="inverse square root"):
        reciprocal_root(one(s))


@given(divisors.filter(bool))
def test_a_factor_is_the_reciprocal_of_any_divisor(d):
    (factor,) = reciprocal_factor(one(d))
    assert abs(value_of(factor) * d - 1) <= FACTOR_ERROR


@given(numerators, divisors, fractions, limits)
def test_a_quotient_is_right_or_saturated(numerator, d, fraction, limit):
    factor = reciprocal_factor(one(d))
    (result,) = scaled(one(numerator), factor, fraction=fraction, limit=limit)
    assert abs(result) <= limit
    if d == 0:
        assert result == np.sign(numerator) * limit
        return
    exact = Fraction(numerator * 2**fraction, d)
    if abs(exact) <= limit * (1 - FACTOR_ERROR) - 1:
        assert abs(result - exact) <= Fraction(1, 2) + abs(exact) * Fraction(FACTOR_ERROR)
    elif abs(exact) > limit * (1 + FACTOR_ERROR) + 1:
        assert result == limit * np.sign(exact)


def test_zero_over_zero_is_zero_and_anything_else_over_zero_saturates():
    over_zero = reciprocal_factor(one(0))
    for numerator, expected in ((0, 0), (1, 1000), (-1, -1000)):
        assert scaled(one(numerator), over_zero, fraction=0, limit=1000) == expected
    over_root = root_factor(one(0))
    for numerator, expected in ((0, 0), (1, 1000), (-1, -1000)):
        assert scaled(one(numerator), over_root, fraction=0, limit=1000) == expected


def test_the_inverse_root_of_a_negative_number_is_nothing():
    assert scaled(one(12345), root_factor(one(-3)), fraction=20, limit=2**30) == 0


@pytest.mark.parametrize(("fraction", "limit"), [(-1, 1), (61, 1), (3, 0), (3, 2**30 + 1)])
def test_places_and_limits_out_of_range_are_refused(fraction, limit):
    with pytest.raises(OverflowError, match="binary places"):
        scaled(one(1), reciprocal_factor(one(1)), fraction=fraction, limit=limit)


@given(st.data())
def test_interpolation_is_the_nearest_point_of_the_line(data):
    values = data.draw(st.lists(st.integers(-(2**15) + 1, 2**15 - 1), min_size=2, max_size=9))
    bits = data.draw(st.integers(1, 12))
    table = np.asarray([*values, values[-1]], np.int16)
    position = data.draw(st.integers(0, (len(values) - 1) << bits))
    (result,) = interpolate(one(position), table, bits)
    exact = np.interp(position / 2**bits, np.arange(len(values)), values)
    assert abs(result - exact) <= 0.5 + 1e-9


def test_a_position_beyond_the_table_is_refused():
    with pytest.raises(OverflowError, match="position"):
        interpolate(one(9), np.zeros(4, np.int16), 2)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_c(
        tmp_path_factory.mktemp("ratios"),
        """#include "entrain_interpolation.h"
        #include "entrain_ratios.h"
        int32_t reciprocal_factor(int32_t d);
        int32_t root_factor(int64_t s);
        int32_t scaled(int32_t n, int32_t factor, int32_t fraction, int32_t limit);
        int32_t interpolated(int32_t here, int32_t next, int32_t fraction, int32_t bits);
        int32_t reciprocal_factor(int32_t d) { return entrain_reciprocal_factor(d); }
        int32_t root_factor(int64_t s) { return entrain_root_factor(s); }
        int32_t scaled(int32_t n, int32_t factor, int32_t fraction, int32_t limit) {
            return entrain_scaled(n, factor, fraction, limit);
        }
        int32_t interpolated(int32_t here, int32_t next, int32_t fraction, int32_t bits) {
            return entrain_interpolate(here, next, fraction, bits);
        }""",
        "-fsanitize=undefined",
        "-fno-sanitize-recover",
        "-fno-sanitize=shift",
    )


@given(numerator=numerators, d=divisors, fraction=fractions, limit=limits)
def test_the_c_of_a_quotient_equals_numpy(library, numerator, d, fraction, limit):
    (factor,) = reciprocal_factor(one(d))
    assert library.reciprocal_factor(d) == factor
    (expected,) = scaled(one(numerator), one(factor), fraction=fraction, limit=limit)
    assert library.scaled(numerator, int(factor), fraction, limit) == expected


@given(s=squares | st.integers(-9, 9))
def test_the_c_of_an_inverse_root_equals_numpy(library, s):
    import ctypes

    assert library.root_factor(ctypes.c_int64(s)) == root_factor(one(s))[0]


@given(
    here=st.integers(-(2**15) + 1, 2**15 - 1),
    following=st.integers(-(2**15) + 1, 2**15 - 1),
    bits=st.integers(1, 12),
    data=st.data(),
)
def test_the_c_of_an_interpolation_equals_numpy(library, here, following, bits, data):
    fraction = data.draw(st.integers(0, 2**bits - 1))
    table = np.asarray([here, following, following], np.int16)
    (expected,) = interpolate(one(fraction), table, bits)
    assert library.interpolated(here, following, fraction, bits) == expected
