"""Means, intervals, tests and verdicts, held against scipy and against what must be true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from entrain.models.experiments.papers import Figure, Published
from entrain.models.experiments.power_law import fit_experiment, fit_power_law
from entrain.models.experiments.specification import TABLES, Experiment, Plot, read_experiment
from entrain.models.experiments.store import Record
from entrain.models.experiments.summary import Row, equivalence, holm, missing, summarise
from entrain.models.experiments.workloads import WORKLOADS

FILE = """
title = "Three"
paper = "a paper"
workload = "fitting"
baseline = "base"
seeds = 5
[metrics.hard]
title = "hard"
unit = "%"
better = "higher"
margin = 1.0
failure = 85.0
[metrics.loss]
title = "loss"
better = "lower"
failure = 2.0
[variants.base]
[variants.near]
[variants.far]
"""
RANDOM = np.random.default_rng(7)
BASE = 90 + RANDOM.normal(size=8)
NEAR = BASE + 0.1 * RANDOM.normal(size=8)
FAR = BASE - 10 + RANDOM.normal(size=8)


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    monkeypatch.setitem(WORKLOADS, "fitting", "fitting_workload:Fitting")
    path = tmp_path / "three.toml"
    path.write_text(FILE)
    return read_experiment(path)


def record(variant: str, seed: int, metrics: Mapping[str, float]) -> Record:
    return Record(
        "three", "small", variant, seed, "key", 1, {}, "built-in", dict(metrics), {}, 2.0, "", {}
    )


def records(metric: str = "hard", **figures: Sequence[float]) -> list[Record]:
    return [
        record(variant, seed, {metric: float(value)})
        for variant, values in figures.items()
        for seed, value in enumerate(values)
    ]


def rows(experiment: Experiment, kept: list[Record], metric: str = "hard") -> dict[str, Row]:
    found = summarise(experiment, kept, Published())
    return {row.variant: row for row in found if row.metric == metric}


def test_mean_deviation_and_interval_are_students(experiment: Experiment) -> None:
    mean = rows(experiment, records(base=BASE))["base"].mean
    assert mean is not None
    assert (mean.n, mean.mean) == (8, pytest.approx(BASE.mean()))
    assert mean.sd == pytest.approx(BASE.std(ddof=1))
    expected = stats.t.interval(0.95, 7, BASE.mean(), stats.sem(BASE))
    assert mean.interval == pytest.approx(expected)


def test_tests_are_paired_by_seed_and_corrected_over_the_variants(experiment: Experiment) -> None:
    found = rows(experiment, records(base=BASE, near=NEAR, far=FAR))
    near, far = found["near"].comparison, found["far"].comparison
    assert found["base"].comparison is None
    assert near is not None
    assert far is not None
    t = [stats.ttest_rel(values, BASE).pvalue for values in (NEAR, FAR)]
    ranks = [stats.wilcoxon(values, BASE).pvalue for values in (NEAR, FAR)]
    assert (near.t_p, far.t_p) == pytest.approx(tuple(t))
    assert (near.wilcoxon_p, far.wilcoxon_p) == pytest.approx(tuple(ranks))
    assert far.t_p_holm == pytest.approx(2 * t[1])  # the smallest of two
    assert near.t_p_holm == pytest.approx(t[0])
    assert far.difference == pytest.approx((FAR - BASE).mean())
    expected = stats.ttest_rel(FAR, BASE).confidence_interval(0.95)
    assert far.interval == pytest.approx((expected.low, expected.high))


def test_the_verdict_says_equal_only_within_the_margin(experiment: Experiment) -> None:
    found = rows(experiment, records(base=BASE, near=NEAR, far=FAR))
    verdicts = {name: row.comparison.verdict for name, row in found.items() if row.comparison}
    assert verdicts == {"near": "equal within 1.0", "far": "differs"}
    near, far = found["near"].comparison, found["far"].comparison
    assert near is not None
    assert far is not None
    assert (near.verdict_p, far.verdict_p) == (near.equivalence_p, far.t_p_holm)


def test_few_and_scattered_seeds_show_nothing(experiment: Experiment) -> None:
    found = rows(experiment, records(base=[90, 91, 92], near=[93, 89, 92.5], far=[95]))
    verdicts = {name: row.comparison.verdict for name, row in found.items() if row.comparison}
    assert verdicts == {"near": "not shown equal", "far": "one seed"}


def test_an_experiment_of_one_seed_has_no_verdict(experiment: Experiment) -> None:
    found = rows(replace(experiment, seeds=1), records(base=[90], near=[91]))
    comparison = found["near"].comparison
    assert comparison is not None
    assert (comparison.difference, comparison.verdict) == (1, "")


def test_only_seeds_that_both_have_are_compared(experiment: Experiment) -> None:
    kept = records(base=BASE) + [record("near", seed, {"hard": NEAR[seed]}) for seed in (1, 4, 6)]
    comparison = rows(experiment, kept)["near"].comparison
    assert comparison is not None
    assert comparison.n == 3
    assert comparison.difference == pytest.approx((NEAR - BASE)[[1, 4, 6]].mean())


def test_failures_are_runs_worse_than_the_threshold(experiment: Experiment) -> None:
    kept = records(base=[84.9, 85.0, 99.0], near=[50, 60, 70])
    assert {name: row.failures for name, row in rows(experiment, kept).items()} == {
        "base": 1,
        "near": 3,
        "far": 0,
    }
    losses = rows(experiment, records("loss", base=[1.0, 2.5]), "loss")
    assert losses["base"].failures == 1


def test_failures_have_an_interval_and_a_test_paired_by_seed(experiment: Experiment) -> None:
    base = [80, 80, 80, 80, 80, 80, 80, 99, 99, 99]
    near = [99, 99, 99, 99, 99, 99, 99, 80, 99, 99]
    far = [80, 80, 80, 80, 80, 80, 99, 99, 99, 99]
    found = rows(experiment, records(base=base, near=near, far=far))
    wilson = stats.binomtest(7, 10).proportion_ci(method="wilson")
    assert found["base"].failures_interval == pytest.approx((wilson.low, wilson.high))
    better, same = found["near"].comparison, found["far"].comparison
    assert better is not None
    assert same is not None
    # Seven pairs went one way and one the other; one pair went, and none came.
    p = [stats.binomtest(7, 8).pvalue, stats.binomtest(1, 1).pvalue]
    assert (better.failures_p, same.failures_p) == pytest.approx(tuple(p))
    assert (better.failures_p_holm, same.failures_p_holm) == pytest.approx((2 * p[0], 1.0))


def test_without_threshold_or_runs_no_failures_are_judged(experiment: Experiment) -> None:
    kept = records(base=BASE, near=NEAR)
    assert rows(experiment, kept)["far"].failures_interval is None
    unjudged = experiment.metrics["hard"].model_copy(update={"failure": None})
    found = rows(replace(experiment, metrics={"hard": unjudged}), kept)
    assert found["near"].failures_interval is None
    comparison = found["near"].comparison
    assert comparison is not None
    assert comparison.failures_p is None


@given(st.floats(50, 100), st.floats(-30, 30), st.integers(2, 9), st.floats(0, 20))
def test_differences_alike_for_all_seeds_are_not_tested(
    level: float, difference: float, seeds: int, step: float
) -> None:
    experiment = read_experiment(TABLES / "sva.toml")
    base = level + step * np.arange(seeds)  # steps of which a sum may be rounded
    kept = [
        record(variant, seed, {"hard": figure})
        for variant, figures in (("softmax", base), ("uniform", base + difference))
        for seed, figure in enumerate(figures)
    ]
    comparison = rows(experiment, kept)["uniform"].comparison
    assert comparison is not None
    assert comparison.verdict == "no spread"
    assert comparison.difference == pytest.approx(difference)
    tests = (comparison.t_p, comparison.wilcoxon_p, comparison.equivalence_p)
    assert tests == (None, None, None)
    assert (comparison.interval, comparison.t_p_holm, comparison.wilcoxon_p_holm) == (None,) * 3


@pytest.mark.filterwarnings("ignore:Precision loss")
@pytest.mark.parametrize("difference", [0.0, 0.5])
def test_scipy_has_no_number_for_differences_alike_either(difference: float) -> None:
    t = stats.ttest_rel(np.array([90.0, 91.0, 92.0]) + difference, [90.0, 91.0, 92.0])
    assert not np.isfinite(t.statistic)


def test_a_variant_without_spread_is_not_among_those_that_holm_counts(
    experiment: Experiment,
) -> None:
    found = rows(experiment, records(base=BASE, near=BASE + 1, far=FAR))
    far = found["far"].comparison
    assert far is not None
    assert far.t_p_holm == far.t_p == pytest.approx(stats.ttest_rel(FAR, BASE).pvalue)


def test_names_that_no_record_has_are_told_with_those_there_are(experiment: Experiment) -> None:
    curve = Plot(kind="curve", y="loses", title="Losses")
    wrong = replace(experiment, plots=(curve,))
    kept = [replace(one, curves={"losses": (1.0,)}) for one in records(base=BASE)]
    assert missing(wrong, []) == []
    metric, plot = missing(wrong, kept)
    assert metric.startswith(f"{experiment.path}:")
    assert metric.endswith("no run has a metric 'loss'; there are: hard.")
    assert plot.endswith("no run has a curve 'loses'; there are: losses.")


def test_what_is_not_there_is_not_made_up(experiment: Experiment) -> None:
    found = rows(experiment, [record("base", 0, {"hard": float("nan")})])
    assert found["base"].mean is None
    assert found["far"].mean is None
    assert found["far"].seconds is None
    assert found["far"].comparison is None


def test_the_papers_figure_stands_beside_ours(experiment: Experiment) -> None:
    published = Published("here", "", {"near": {"hard": Figure(mean=92.0, sd=1.0, seeds=5)}})
    found = {
        row.variant: row
        for row in summarise(experiment, records(base=BASE, near=NEAR), published)
        if row.metric == "hard"
    }
    assert found["near"].to_published == pytest.approx(NEAR.mean() - 92.0)
    assert found["base"].to_published is None


@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=12).filter(lambda v: np.ptp(v) > 1e-3),
    st.floats(0.1, 5),
)
def test_equivalence_is_a_90_percent_interval_within_the_margin(
    differences: list[float], margin: float
) -> None:
    p = equivalence(differences, margin)
    low, high = stats.t.interval(
        0.9, len(differences) - 1, np.mean(differences), stats.sem(differences)
    )
    if abs(p - 0.05) > 1e-9:
        assert (p < 0.05) == (-margin < low and high < margin)


@pytest.mark.parametrize("differences", [[0.0, 0.0], [1.5, 1.5, 1.5], [0.5]])
def test_differences_without_spread_have_no_test_of_equivalence(differences: list[float]) -> None:
    with pytest.raises(ValueError, match="different"):
        equivalence(differences, 1.0)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values: list[float]) -> None:
    rejected = set()
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] * (len(p_values) - rank) > 0.05:
            break
        rejected.add(index)
    assert {index for index, p in enumerate(holm(p_values)) if p <= 0.05} == rejected


def test_a_power_law_of_known_slope_is_found_again() -> None:
    sizes = {f"d{d}": d for d in (2, 4, 8, 16, 32)}
    noise = np.random.default_rng(1).normal(0, 0.02, size=(5, 6))
    gaps = {name: 3.0 * d**-0.7 * np.exp(noise[i]) for i, (name, d) in enumerate(sizes.items())}
    fit = fit_power_law("perplexity", sizes, gaps)
    assert fit.b == pytest.approx(0.7, abs=0.02)
    assert fit.c == pytest.approx(3.0, rel=0.03)
    assert fit.interval is not None
    assert fit.interval[0] < 0.7 < fit.interval[1]
    assert fit.interval[1] - fit.interval[0] < 0.1
    expected = stats.linregress(
        np.log(list(sizes.values())), np.log([gap.mean() for gap in gaps.values()])
    )
    assert (fit.b, fit.c) == pytest.approx((-expected.slope, np.exp(expected.intercept)))
    assert fit_power_law("perplexity", sizes, gaps) == fit


def test_the_slopes_interval_is_as_wide_as_its_standard_error_says() -> None:
    slopes = 0.5 + 0.1 * np.random.default_rng(3).normal(size=40)
    fit = fit_power_law("loss", {"a": 2, "b": 4}, {"a": np.full(40, 2.0), "b": 2.0 * 2.0**-slopes})
    assert fit.interval is not None
    expected = 2 * 1.96 * slopes.std(ddof=1) / np.sqrt(40)
    assert fit.interval[1] - fit.interval[0] == pytest.approx(expected, rel=0.2)


def test_a_gap_that_is_not_positive_is_left_out_and_named() -> None:
    sizes = {"d2": 2, "d4": 4, "d8": 8, "d16": 16}
    gaps = {"d2": 4.0, "d4": 2.0, "d8": 1.0, "d16": -0.5}
    fit = fit_power_law("loss", sizes, {name: np.full(3, gap) for name, gap in gaps.items()})
    assert (fit.b, fit.left_out) == (pytest.approx(1.0), ("d16",))
    none = fit_power_law("loss", sizes, {name: np.full(3, -gap) for name, gap in gaps.items()})
    assert none.b is None
    assert none.interval is None
    assert len(none.points) == 4


def test_one_seed_has_no_interval() -> None:
    fit = fit_power_law("loss", {"a": 2, "b": 4}, {"a": np.array([2.0]), "b": np.array([1.0])})
    assert fit.b == pytest.approx(1.0)
    assert fit.interval is None


def test_an_experiment_is_fitted_over_the_d_osc_of_its_variants(tmp_path: Path) -> None:
    path = tmp_path / "law.toml"
    head = FILE[: FILE.index("[variants.base]")].replace("fitting", "cost")
    variants = {"base": "softmax", "near": "oscillator-relu", "far": "oscillator-relu-d8"}
    tables = [f'[variants.{name}]\nattention = "{slug}"\n' for name, slug in variants.items()]
    law = '[power_law]\nmetric = "loss"\nvariants = ["far", "near"]\n'
    path.write_text("".join([head, *tables, law]))
    experiment = read_experiment(path)
    kept = records("loss", base=[1.0, 1.5], near=[5.0, 5.5], far=[2.0, 2.5])
    fit = fit_experiment(experiment, "small", kept)
    assert fit is not None
    assert [(point.d_osc, point.gap) for point in fit.points] == [(2, 4.0), (8, 1.0)]
    assert fit.b == pytest.approx(1.0)
    assert fit.interval == pytest.approx((1.0, 1.0))
    # A variant with a baseline of its own has its gap to that one.
    rival = '[variants.rival]\nattention = "softmax"\n'
    own = tables[2] + 'baseline = "rival"\n'
    path.write_text("".join([head, *tables[:2], own, rival, law]))
    kept += records("loss", rival=[1.5, 2.0])
    fit = fit_experiment(read_experiment(path), "small", kept)
    assert fit is not None
    assert [point.gap for point in fit.points] == [4.0, 0.5]
