"""Comparisons pair what belongs together: same task, board, seed and clips."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from torch import nn

from entrain.deploy.comparison import identity_of
from entrain.deploy.comparisons import Predictions, compare, paired_tests, ratios, seed_summaries
from entrain.deploy.results import Accuracy, Figure, PairedTest, Ratio, Result, SeedSummary, Subset
from entrain.deploy.tasks import TASKS
from entrain.models.attention import AttentionConfig

TRUTH = np.arange(40) % 4
SPEAKERS = tuple(f"speaker{index // 2}" for index in range(40))


def predictions(
    mechanism: str, wrong: int, seed: int = 0, board: str = "m4", complete: bool = True
) -> Predictions:
    attention, _, coupling = mechanism.partition(" ")
    predicted = TRUTH.copy()
    predicted[:wrong] = (predicted[:wrong] + 1) % 4
    cycles = Figure(value=100 + wrong, kind="modelled", low=90, high=200, source="a source")
    row = Result(
        run=f"{mechanism}-{seed}",
        task="keyword",
        attention=attention,
        coupling=coupling or None,
        seed=seed,
        board=board,
        accuracy=Accuracy(device=1 - wrong / 40, n=40),
        instructions=1000 - wrong,
        cycles=cycles,
        complete=complete,
    )
    return Predictions(row, TRUTH, predicted, SPEAKERS)


def test_every_run_is_tested_against_softmax_of_its_seed_and_board() -> None:
    found = paired_tests(
        [
            predictions("softmax", 4, seed=0),
            predictions("softmax", 8, seed=1),
            predictions("softmax", 0, seed=0, board="m55"),
            predictions("oscillator relu", 6, seed=0),
            predictions("oscillator relu", 6, seed=1),
        ]
    )
    assert [(test.run, test.baseline) for test in found] == [
        ("oscillator relu-0", "softmax-0"),
        ("oscillator relu-1", "softmax-1"),
    ]
    assert [test.difference for test in found] == pytest.approx([-0.05, 0.05])
    assert (found[0].n, found[0].n_groups) == (40, 20)


def test_other_clips_are_not_paired() -> None:
    other = Predictions(predictions("uniform", 0).row, TRUTH[:20], TRUTH[:20], SPEAKERS[:20])
    assert paired_tests([predictions("softmax", 4), other]) == []


def test_seeds_are_summed_up_and_compared_seed_by_seed() -> None:
    rows = [
        predictions(mechanism, wrong + seed, seed).row
        for mechanism, wrong in (("softmax", 2), ("uniform", 4))
        for seed in (0, 1, 2)
    ]
    softmax, uniform, less = seed_summaries(rows)
    assert (softmax.mechanism, softmax.metric, softmax.n_seeds) == ("softmax", "accuracy", 3)
    assert softmax.mean == pytest.approx(1 - 3 / 40)
    assert softmax.sd == pytest.approx(1 / 40)
    assert uniform.baseline_mechanism is None
    assert (less.metric, less.baseline_mechanism) == ("accuracy difference", "softmax")
    assert less.mean == pytest.approx(-2 / 40)
    assert less.sd == pytest.approx(0)


def test_counted_ratios_are_exact_and_modelled_ones_have_bounds() -> None:
    rows = [predictions("softmax", 0).row, predictions("uniform", 20).row]
    counted, modelled = ratios(rows)
    assert counted.ratio == Figure(value=0.98, kind="counted")
    assert (counted.quantity, modelled.quantity) == ("instructions", "cycles")
    assert modelled.ratio.kind == "modelled"
    assert modelled.ratio.value == pytest.approx(1.2)
    assert (modelled.ratio.low, modelled.ratio.high) == pytest.approx((90 / 200, 200 / 90))


def test_an_incomplete_row_is_compared_with_nothing() -> None:
    found = compare([predictions("softmax", 4), predictions("uniform", 2, complete=False)])
    assert [type(item) for item in found] == [SeedSummary]


def test_all_sorts_of_comparison_are_made() -> None:
    found = compare([predictions("softmax", 4), predictions("uniform", 2)])
    assert {type(item) for item in found} == {SeedSummary, PairedTest, Ratio}


def test_oscillators_that_differ_in_epsilon_or_anchors_only_are_not_taken_together() -> None:
    usual = predictions("oscillator relu", 2).row.model_copy(update={"epsilon": 1 / 64})
    wide = usual.model_copy(update={"epsilon": 0.5, "seed": 1})
    turning = usual.model_copy(update={"anchors": "rotation", "seed": 2})
    assert [summary.mechanism for summary in seed_summaries([usual, wide, turning])] == [
        "oscillator relu",
        "oscillator relu eps=0.5",
        "oscillator relu rotation",
    ]


@pytest.mark.parametrize(
    ("slug", "mechanism"),
    [
        ("softmax", "softmax"),
        ("linear-elu", "linear elu"),
        ("lowrank-relu", "lowrank relu"),
        ("lowrank-relu-d4", "lowrank relu d=4"),
        ("oscillator-softplus-d8-p2", "oscillator softplus d=8 p=2"),
        ("oscillator-relu-eps0.5-rotation", "oscillator relu eps=0.5 rotation"),
    ],
)
def test_a_row_says_every_setting_that_its_mechanism_takes(slug: str, mechanism: str) -> None:
    checkpoint = SimpleNamespace(
        config=SimpleNamespace(attention=AttentionConfig.parse(slug)),
        task="agreement",
        training=SimpleNamespace(seed=0),
        build_network=lambda: nn.Linear(2, 2),
    )
    candidate: Any = SimpleNamespace(
        run=SimpleNamespace(name="a run"),
        checkpoint=checkpoint,
        task=TASKS["agreement"],
        data="templates",
    )
    target: Any = SimpleNamespace(board=SimpleNamespace(name="m4"), address="qemu:m4")
    assert identity_of(candidate, target, None).mechanism == mechanism


def test_subsets_are_tested_and_summed_up_on_their_own() -> None:
    hard = TRUTH == 1
    found = []
    for mechanism, wrong in (("softmax", 8), ("uniform", 20)):
        one = predictions(mechanism, wrong)
        right = (one.predicted == one.truth)[hard]
        subset = Subset(n=len(right), device=float(right.mean()))
        row = one.row.model_copy(update={"subsets": {"hard": subset}, "sample": "sentence"})
        found.append(Predictions(row, TRUTH, one.predicted, None, {"hard": hard}))
    everywhere, on_hard = paired_tests(found)
    assert (everywhere.subset, everywhere.n, everywhere.n_groups) == (None, 40, None)
    assert (on_hard.subset, on_hard.n) == ("hard", 10)
    assert on_hard.difference == pytest.approx(-3 / 10)
    assert "permutation of sentences" in on_hard.method
    metrics = [summary.metric for summary in seed_summaries([one.row for one in found])]
    assert metrics == [
        *("accuracy", "accuracy", "accuracy difference"),
        *("hard accuracy", "hard accuracy", "hard accuracy difference"),
    ]
