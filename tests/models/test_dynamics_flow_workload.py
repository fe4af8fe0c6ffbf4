from __future__ import annotations

import math

import pytest
import torch

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.attention.settling import recorded_fields
from entrain.models.experiments.papers import published_figures
from entrain.models.experiments.specification import find_experiment
from entrain.models.experiments.workload import Outcome, Place
from entrain.models.experiments.workloads.flow import ANGLES, HORIZONS, Flow
from entrain.models.training import EpochReport


def measured(flow: Flow, seed: int = 0) -> Outcome:
    return flow.measure(seed, Place(None), lambda _: None)


@pytest.mark.parametrize("d", [2, 8, 32])
def test_the_formula_predicts_what_converges(d: int) -> None:
    # Lengths over decades: about a seventh is too weak to settle in time.
    flow = Flow(d_osc=d, fields="lengths", median=5.0, spread=3.0, sequences=40, integrator="exact")
    metrics = measured(flow).metrics
    samples = flow.sequences * flow.tokens
    # Five starts share a field, but the formula knows the field: starts are independent.
    deviation = 100 * math.sqrt(0.25 / (samples * flow.starts))
    assert metrics["converged"] == pytest.approx(metrics["expected"], abs=4 * deviation)
    assert 70 < metrics["converged"] < 95
    assert metrics["converged"] == pytest.approx(metrics["converged_30"])
    assert 0 < metrics["far"] < 100 - metrics["converged"]
    assert metrics["weak"] > 0


def test_a_tolerance_is_a_distance_and_the_formula_has_its_angle() -> None:
    # At once, from anywhere on the circle: within a distance of 1.5 is within 2 asin(0.75) of z*.
    flow = Flow(tolerance=1.5, horizon=1e-6, sequences=40, integrator="exact")
    metrics = measured(flow).metrics
    within, near = (100 * 2 * math.asin(distance / 2) / math.pi for distance in (1.5, 0.1))
    assert metrics["expected"] == pytest.approx(within, abs=0.01)
    assert metrics["converged"] == pytest.approx(within, abs=1.5)
    assert metrics["far"] == pytest.approx(100 - near, abs=0.6)


def test_the_integrator_and_the_closed_form_count_alike() -> None:
    flows = [
        Flow(d_osc=3, sequences=2, tokens=20, horizon=2.0, integrator=name)
        for name in ("adaptive", "exact")
    ]
    adaptive, exact = (measured(flow).metrics for flow in flows)
    assert adaptive == pytest.approx(exact, rel=1e-6)
    assert 5 < exact["converged"] < 95


def test_starts_near_the_antipode_follow_the_formula() -> None:
    outcome = measured(Flow(d_osc=4, sequences=20, integrator="exact"))
    counted, formula = outcome.curves["antipodal"], outcome.curves["antipodal_formula"]
    assert len(counted) == len(formula) == len(ANGLES)
    assert counted == pytest.approx(formula, abs=1.5)
    assert outcome.metrics["antipodal_difference"] < 1.5
    assert formula[-1] == pytest.approx(50)
    assert outcome.metrics["antipodal_eighth_formula"] == pytest.approx(1.2417319914)


def test_a_good_start_needs_less_time_and_has_no_antipode_to_report() -> None:
    random, sequential, axis = (
        measured(Flow(start=start, integrator="exact", sequences=20, horizon=1.0))
        for start in ("random", "sequential", "axis")
    )
    assert sequential.metrics["mean_error"] < 0.8 * random.metrics["mean_error"]
    assert axis.metrics["mean_error"] < random.metrics["mean_error"]
    assert "expected" in random.metrics
    assert "expected" not in sequential.metrics
    assert not any(name.startswith("antipodal") for name in axis.metrics)


def test_later_horizons_leave_fewer_behind() -> None:
    outcome = measured(Flow(fields="lengths", spread=4.0, integrator="exact"))
    curve = outcome.curves["converged_by_horizon"]
    assert len(curve) == len(HORIZONS)
    assert list(curve) == sorted(curve)
    assert curve[0] < curve[-1] <= 100


def test_the_same_seed_gives_the_same_outcome() -> None:
    flow = Flow(d_osc=3, sequences=2, integrator="exact")
    assert measured(flow, 3) == measured(flow, 3)
    assert measured(flow, 3) != measured(flow, 4)


def test_a_trained_networks_fields_can_be_recorded() -> None:
    torch.manual_seed(0)
    layer = build_attention(AttentionConfig.parse("oscillator-relu-d5"), 12, 3, 6)
    x = torch.randn(4, 6, 12)
    quiet = layer(x)
    with recorded_fields(layer) as fields:
        assert torch.equal(layer(x), quiet)
        layer(x[:2])
    layer(x)
    assert [part.shape for part in fields] == [(4, 3, 6, 5), (2, 3, 6, 5)]
    torch.testing.assert_close(fields[0][:2], fields[1])


@pytest.mark.long
def test_the_formula_predicts_what_converges_in_a_trained_networks_fields() -> None:
    reports: list[EpochReport] = []
    flow = Flow(d_osc=8, fields="trained", epochs=2, sequences=300, horizon=5.0)
    metrics = flow.measure(0, Place(None), reports.append).metrics
    assert len(reports) == flow.epochs
    assert metrics["converged"] == pytest.approx(metrics["expected"], abs=2)
    assert metrics["converged_100"] > 99


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fields": "magic"}, "no fields 'magic'"),
        ({"start": "nowhere"}, "no start 'nowhere'"),
        ({"integrator": "guess"}, "no integrator 'guess'"),
        ({"d_osc": 1}, "at least 2 dimensions"),
        ({"horizon": 0.0}, "horizon must be positive"),
        ({"sequences": 0}, "sequences must be positive"),
        ({"tolerance": 2.0}, "between 0 and 2"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Flow(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["convergence", "antipodal", "starts"])
def test_every_metric_of_the_tables_is_measured(name: str) -> None:
    experiment = find_experiment(name)
    published_figures(experiment)
    for variant in experiment.variants.values():
        settings = {**experiment.settings, **variant.settings}
        if settings.get("fields") == "trained":
            settings["fields"] = "couplings"
        settings |= {"integrator": "exact", "sequences": 2}
        outcome = measured(Flow(**settings))  # type: ignore[arg-type]
        assert set(experiment.metrics) <= set(outcome.metrics)
        assert {plot.y for plot in experiment.plots} <= set(outcome.curves)
