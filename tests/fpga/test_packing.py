"""Numbers on a stream: the first one lowest, and back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from entrain.fpga.simulators.packing import packed, unpacked


def test_the_first_number_lies_lowest_and_rows_are_padded_to_words():
    words = packed(np.array([[1, -1, 2], [0, 0, 0x1234]]), 16)
    assert words.tolist() == [[0xFFFF0001, 2], [0, 0x1234]]


@given(
    st.integers(1, 40).flatmap(
        lambda bits: st.tuples(
            st.just(bits),
            st.lists(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1), min_size=1, max_size=9),
        )
    )
)
def test_what_was_packed_comes_back_signed_or_not(case):
    bits, numbers = case
    words = packed(np.array([numbers]), bits)
    assert unpacked(words, len(numbers), bits, signed=True).tolist() == [numbers]
    unsigned = [number % 2**bits for number in numbers]
    assert unpacked(words, len(numbers), bits, signed=False).tolist() == [unsigned]


def test_numbers_may_stand_above_other_bits():
    words = packed(np.array([[0b1010, 5, 0, 0]]), 4)
    assert unpacked(words, 1, 4, offset=4, signed=False).tolist() == [[5]]
