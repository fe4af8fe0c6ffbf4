"""What the blocks compute, against real numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrain.fpga.dynamics import Dynamics, scaled_field
from entrain.fpga.reference import Flags, SettlingCore
from entrain.fpga.verification.instances import (
    oscillator_block,
    random_anchors,
    settling_core,
    softmax_block,
)

ONE = 2**14
SCHEMES = [None, Dynamics()]


def couplings(random, queries, tokens):
    """From next to nothing to all that fits, some of them zero."""
    reach = 2.0 ** random.uniform(0, 15, (queries, 1))
    some = random.uniform(size=(queries, tokens)) < random.uniform(0.05, 1, (queries, 1))
    return (reach * random.uniform(size=(queries, tokens)) * some).astype(np.int64)


def directions(core, w):
    """The exact h / |h|, and where the block says that it knows it."""
    h = (w @ core.anchors).astype(np.float64)
    length = np.linalg.norm(h, axis=1, keepdims=True)
    return np.divide(h, length, out=np.zeros_like(h), where=length > 0)


@pytest.mark.parametrize("dynamics", SCHEMES, ids=["closed form", "dynamics"])
@pytest.mark.parametrize("components", [2, 4, 8, 16, 32])
def test_states_are_within_a_thousandth_wherever_the_field_is_not_weak(components, dynamics):
    random = np.random.default_rng(components)
    core = settling_core(random_anchors(random, 64, components), dynamics=dynamics)
    w = couplings(random, 2000, 64)
    settled = core.settled(w)
    known = (settled.flags & (Flags.WEAK | Flags.ZERO)) == 0
    error = np.linalg.norm(settled.states / ONE - directions(core, w), axis=1)
    assert known.mean() > 0.5
    assert error[known].max() < 2**-10
    assert not (settled.flags & Flags.NOT_CONVERGED).any()


@pytest.mark.parametrize("dynamics", SCHEMES, ids=["closed form", "dynamics"])
def test_weights_are_the_paper_s_read_out(dynamics):
    random = np.random.default_rng(1)
    core = settling_core(random_anchors(random, 25, 3), dynamics=dynamics)
    w = couplings(random, 300, 25)
    settled = core.settled(w)
    closeness = np.maximum(1 + (settled.states / ONE) @ (core.anchors.T / 127), 0)
    exact = closeness / closeness.sum(axis=1, keepdims=True)
    assert np.abs(settled.weights / 2**16 - exact).max() < 2**-14


def test_no_field_is_zero_and_reads_out_uniformly():
    core = settling_core(random_anchors(np.random.default_rng(2), 16, 2))
    settled = core.settled(np.zeros((1, 16), np.int64))
    assert settled.flags[0] & Flags.ZERO
    assert not settled.states.any()
    assert np.abs(settled.weights / 2**16 - 1 / 16).max() < 2**-14


def test_a_field_no_larger_than_its_rounding_is_weak():
    core = settling_core(np.array([[127, 0], [-127, 0], [0, 127]]))
    settled = core.settled(np.array([[1, 0, 0], [500, 0, 0]]))
    assert settled.flags.tolist() == [Flags.WEAK, 0]


def test_the_weight_of_a_single_token_is_cut_to_its_format():
    core = settling_core(np.array([[0, 127]]))
    settled = core.settled(np.array([[9]]))
    assert settled.weights.tolist() == [[2**16 - 1]]
    assert settled.flags[0] & Flags.SATURATED


@pytest.mark.parametrize("w", [-1, 2**15])
def test_couplings_that_do_not_fit_are_refused(w):
    core = settling_core(np.array([[127, 0]]))
    with pytest.raises(OverflowError, match="couplings"):
        core.settled(np.array([[w]]))


def test_more_anchors_than_the_block_holds_are_refused():
    with pytest.raises(OverflowError, match="129 anchors"):
        SettlingCore(np.ones((129, 2), np.int64), 1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=2, max_size=8))
def test_a_scaled_field_points_where_the_field_does_and_is_half_to_one_long(field):
    h = np.array([field], np.int64)
    scaled = scaled_field(h)[0]
    if not h.any():
        assert not scaled.any()
        return
    assert 0.49 < np.linalg.norm(scaled) / ONE < 1.01
    exact = h[0] / np.linalg.norm(h[0].astype(np.float64))
    assert np.abs(scaled / np.linalg.norm(scaled) - exact).max() < 2**-11


def test_dynamics_start_beside_the_field_never_at_its_antipode():
    """Where a free oscillator would rest for ever."""
    path = Dynamics().settle(np.array([[-5000, 1], [5000, -1], [0, -7000]]), record=True)
    assert path.trajectory is not None
    assert path.trajectory[0].tolist() == [[-ONE, 0], [ONE, 0], [ONE, 0]]
    assert path.converged.all()
    assert np.abs(path.states[2] - [0, -ONE]).max() <= 8


def test_a_trajectory_ends_where_the_state_settles_and_takes_its_steps():
    path = Dynamics().settle(np.array([[300, 4000]]), record=True)
    assert path.trajectory is not None
    assert len(path.trajectory) == path.steps[0] + 1
    assert np.array_equal(path.trajectory[-1], path.states)
    toward = path.trajectory @ np.array([300, 4000])
    assert np.all(np.diff(toward[:5, 0]) > 0)


def test_too_few_steps_are_reported():
    core = settling_core(random_anchors(np.random.default_rng(3), 8, 2), dynamics=Dynamics(2))
    settled = core.settled(couplings(np.random.default_rng(4), 50, 8) + 9)
    assert (settled.flags & Flags.NOT_CONVERGED).any()
    assert settled.steps.max() == 2


ATTENTION = {
    "relu": lambda q, k: np.maximum(q @ k.T, 0) / 4 + 1 / 64,
    "separable": lambda q, k: np.maximum(q, 0) @ np.maximum(k, 0).T / 4 + 1 / 64,
}


@pytest.mark.parametrize("coupling", ["relu", "separable"])
def test_oscillator_contexts_are_within_a_step_of_the_paper_s_formula(coupling):
    random = np.random.default_rng(5)
    anchors = random_anchors(random, 49, 2)
    scale, context_scale = 0.02, 0.01
    block = oscillator_block(
        anchors,
        coupling=coupling,
        d_head=16,
        score_scale=scale**2 / 4,
        epsilon=1 / 64,
        value_scale=scale,
        context_scale=context_scale,
    )
    low = 0 if coupling == "separable" else -128
    q, k = (random.integers(low, 127, (49, 16)) for _ in range(2))
    v = random.integers(-128, 128, (49, 16))
    r = anchors / 127
    h = ATTENTION[coupling](q * scale, k * scale) @ r
    closeness = 1 + h / np.linalg.norm(h, axis=1, keepdims=True) @ r.T
    exact = closeness / closeness.sum(axis=1, keepdims=True) @ (v * scale)
    assert np.abs(block.contexts(q, k, v) - exact / context_scale).max() < 0.6


def test_softmax_contexts_are_within_a_step_of_the_formula():
    random = np.random.default_rng(6)
    block = softmax_block(49, d_head=16, logit=1e-4, value_scale=0.02, context_scale=0.02)
    q, k, v = (random.integers(-128, 128, (49, 16)) for _ in range(3))
    weights = np.exp(1e-4 * (q @ k.T))
    exact = weights / weights.sum(axis=1, keepdims=True) @ v
    assert np.abs(block.contexts(q, k, v) - exact).max() < 0.7
