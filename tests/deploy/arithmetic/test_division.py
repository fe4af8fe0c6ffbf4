"""Integer quotients against exact rationals, and their C against numpy."""

from __future__ import annotations

import ctypes
from fractions import Fraction

import numpy as np
import pytest
from c_library import compile_c
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.arithmetic import Quotient, leading_zeros, quotient, reciprocal

INT32_MAX = 2**31 - 1
denominators = st.integers(1, 31).flatmap(lambda bits: st.integers(1, 2**bits - 1))
numerators = st.integers(-(2**31), INT32_MAX)


@st.composite
def quotients(draw):
    """A quotient that fits, a denominator within its range, and its real factor."""
    least, d, most = sorted(draw(st.tuples(denominators, denominators, denominators)))
    # such that c / d leaves the numerators' 32 bits room for a fraction, and not only that
    factor = least * 2.0 ** draw(st.floats(-28.0, -4.0))
    return quotient(factor, least, most), d, factor


def one(x):
    return np.asarray([x], np.int64)


def test_every_16_bit_top_gives_a_reciprocal_within_its_bound():
    """All tops, with the least and the most that cutting d to 16 bits may drop."""
    top = np.arange(2**15, 2**16, dtype=np.int64)
    for d in (top << 15, ((top + 1) << 15) - 1):
        r, n = reciprocal(d)
        assert np.all(n == 1)
        # |r * 2**(n-48) * d - 1| in exact integers
        error = r * (d << 1) - 2**48
        assert error.min() >= -(2**32)
        assert error.max() < 2**33


@given(denominators)
def test_a_reciprocal_is_within_two_to_the_minus_15(d):
    (r,), (n,) = reciprocal(one(d))
    approximation = Fraction(int(r)) / 2 ** (48 - int(n))
    assert abs(approximation * d - 1) < Fraction(1, 2**15)
    assert 2**16 < r < 2**17


@given(denominators)
def test_leading_zeros_are_those_of_a_32_bit_word(d):
    assert leading_zeros(one(d))[0] == 32 - d.bit_length()


@pytest.mark.parametrize("d", [0, -1, 2**31])
def test_a_denominator_out_of_range_is_refused(d):
    with pytest.raises(OverflowError, match="denominator"):
        reciprocal(one(d))


@given(quotients(), numerators)
def test_a_quotient_is_the_rational_within_its_error_and_half_a_step(case, numerator):
    integers, d, factor = case
    f = integers.factor(one(d))
    exact = Fraction(factor) * numerator / d
    result = int(integers.divide(one(numerator), f)[0])
    bound = Fraction(1, 2) + abs(exact) * Fraction(integers.relative_error)
    assert abs(result - exact) <= bound


@given(quotients())
def test_a_quotient_fits_its_types(case):
    integers, d, _ = case
    assert 0 <= integers.factor(one(d))[0] <= INT32_MAX
    assert 33 <= integers.shift <= 54
    assert 2**14 <= integers.multiplier < 2**15


def test_denominators_of_six_octaves_leave_four_hundredths_of_a_thousandth_of_a_quotient():
    assert quotient(1.0, 2**15, 2**21).relative_error < 2**-13.9


@pytest.mark.parametrize("factor", [1.0, 2.0**20])
def test_a_factor_that_leaves_no_fraction_is_refused(factor):
    with pytest.raises(OverflowError, match="factor"):
        quotient(factor, 1, 10)


def test_a_denominator_outside_the_promised_range_is_refused():
    with pytest.raises(OverflowError, match="denominator"):
        quotient(1.0, 2**15, 2**20).factor(one(2**14))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_c(
        tmp_path_factory.mktemp("division"),
        """#include "entrain_division.h"
        int32_t row_factor(int32_t d, uint32_t multiplier, int32_t drop);
        int32_t divide(int32_t numerator, int32_t f, int32_t shift);
        int32_t divide_to_byte(int32_t numerator, int32_t f, int32_t shift, int32_t zero_point,
                               bool is_unsigned);
        int32_t row_factor(int32_t d, uint32_t multiplier, int32_t drop) {
            return entrain_row_factor(d, multiplier, drop);
        }
        int32_t divide(int32_t numerator, int32_t f, int32_t shift) {
            return entrain_divide(numerator, f, shift);
        }
        int32_t divide_to_byte(int32_t numerator, int32_t f, int32_t shift, int32_t zero_point,
                               bool is_unsigned) {
            return entrain_divide_to_byte(numerator, f, shift, zero_point, is_unsigned);
        }""",
    )


@given(case=quotients(), numerator=numerators)
def test_the_c_equals_numpy(library: ctypes.CDLL, case: tuple[Quotient, int, float], numerator):
    integers, d, _ = case
    f = int(integers.factor(one(d))[0])
    assert library.row_factor(d, integers.multiplier, integers.drop) == f
    expected = int(integers.divide(one(numerator), one(f))[0])
    assert library.divide(numerator, f, integers.shift) == expected


@given(case=quotients(), numerator=numerators, is_unsigned=st.booleans(), place=st.integers(0, 255))
def test_the_c_of_a_quotient_as_a_byte_adds_the_zero_point_and_clips(
    library: ctypes.CDLL, case: tuple[Quotient, int, float], numerator, is_unsigned, place
):
    integers, d, _ = case
    f = integers.factor(one(d))
    low = 0 if is_unsigned else -128
    zero_point = low + place
    expected = np.clip(integers.divide(one(numerator), f)[0] + zero_point, low, low + 255)
    arguments = (numerator, int(f[0]), integers.shift, zero_point, is_unsigned)
    assert library.divide_to_byte(*arguments) == expected
