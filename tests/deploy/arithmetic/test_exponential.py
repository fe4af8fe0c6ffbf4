"""Exponentials by table against exact ones, and the ranges that were proved for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.arithmetic import exponential
from entrain.deploy.arithmetic.exponential import ENTRIES

reaches = st.integers(1, 26).flatmap(lambda bits: st.integers(1, 2**bits))
logits = st.floats(1e-3, 160.0)  # of the farthest score


@st.composite
def rows(draw):
    """A table, scores up to its reach, and what one step of a score stands for."""
    reach = draw(reaches)
    logit = draw(logits) / reach
    scores = draw(st.lists(st.integers(-reach, reach), min_size=1, max_size=20))
    return exponential(logit, reach, 2**15 - 1), np.asarray(scores), logit


@given(rows())
def test_weights_are_exponentials_within_two_steps_of_the_table(case):
    table, scores, logit = case
    exact = np.exp((scores - scores.max()) * logit) * table.largest
    step = 2**16 * logit / table.multiplier
    bound = exact * np.expm1(2 * step) + 0.5 + 0.5
    assert np.all(np.abs(table.weights(scores) - exact) <= bound)


@given(rows())
def test_the_largest_score_has_the_largest_weight(case):
    table, scores, _ = case
    assert table.weights(scores)[np.argmax(scores)] == table.largest


@given(rows())
def test_steps_fit_sixteen_bits_with_the_table_below_them(case):
    table, _, _ = case
    assert table.reach * table.multiplier < 2**31
    assert (-table.reach * table.multiplier) >> 16 >= ENTRIES - 1 - 2**15
    assert (table.reach * table.multiplier) >> 16 < 2**15


@given(rows())
def test_the_first_entry_is_none_of_a_score_s_that_the_table_reaches(case):
    """So what is not there can have its weight, 0; here the scores span less than the table."""
    table, _, logit = case
    if 2 * table.reach * logit < 5.0:
        assert np.all(table.weights(np.asarray([-table.reach, table.reach])) > 0)
    assert table.table[0] == 0
    assert np.all(np.diff(table.table) >= 0)


def test_where_logits_matter_the_step_is_that_of_2048_entries():
    table = exponential(1e-3, 2**15, 2**15 - 1)
    assert 2**16 * 1e-3 / table.multiplier == pytest.approx(0.0054, abs=0.0001)


@pytest.mark.parametrize(("logit", "reach"), [(1.0, 2**20), (1.0, 2**31), (0.0, 100)])
def test_a_table_that_would_be_coarse_is_refused(logit, reach):
    with pytest.raises((OverflowError, ZeroDivisionError)):
        exponential(logit, reach, 2**15 - 1)


def test_a_score_beyond_the_reach_is_refused():
    with pytest.raises(OverflowError, match="score"):
        exponential(0.01, 100, 1000).weights(np.asarray([101]))
