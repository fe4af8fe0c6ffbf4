from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import binom

from entrain.deploy.errors import UsageError
from entrain.models.dynamics import (
    angle_between,
    cap_probability,
    failing_angle,
    failure_probability,
    gaussian_failure_probability,
    random_states,
    settling_time,
    state_after,
    unstable_equilibrium,
    weak_field_probability,
)

DIMENSIONS = [2, 3, 4, 8, 16, 32]
SAMPLES = 40_000


def agrees(count: int, samples: int, probability: float) -> bool:
    """Whether a count is what sampling gives but for once in a million times."""
    low, high = binom.interval(1 - 1e-6, samples, probability)
    return bool(low <= count <= high)


@pytest.mark.parametrize("d", [*DIMENSIONS, 64])
def test_the_cap_formula_is_the_papers_integral(d: int) -> None:
    constant = math.exp(gammaln(d / 2) - gammaln((d - 1) / 2)) / math.sqrt(math.pi)
    for angle in (1e-2, math.pi / 8, 1.2, math.pi / 2, 2.0, 3.1):
        integral, _ = quad(lambda t: math.sin(t) ** (d - 2), 0, angle, epsabs=0, epsrel=1e-11)
        assert float(cap_probability(angle, d)) == pytest.approx(constant * integral, rel=1e-9)
    np.testing.assert_allclose(cap_probability([0, math.pi / 2, math.pi], d), [0, 0.5, 1])


def test_the_cap_formula_gives_the_figures_of_the_authors() -> None:
    # Their results/convergence/ode_verification_v2.json and theory_validation/.
    for d, angle, theirs in (
        (2, math.pi / 8, 0.125),
        (8, math.pi / 6, 0.001267998040129051),
        (32, math.pi / 4, 2.1083450153057845e-06),
        (64, 0.01, 5.001283917144049e-128),
    ):
        assert float(cap_probability(angle, d)) == pytest.approx(theirs, rel=1e-7)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_antipodal_starts_are_as_rare_as_the_formula_says(d: int) -> None:
    generator = torch.Generator().manual_seed(d)
    starts = random_states((SAMPLES, d), generator)
    fields = random_states((SAMPLES, d), generator)
    angles = angle_between(starts, unstable_equilibrium(fields))
    for limit in (math.pi / 16, math.pi / 8, math.pi / 4, 1.3):
        probability = float(cap_probability(limit, d))
        assert agrees(int((angles < limit).sum()), SAMPLES, probability)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_who_fails_within_the_horizon_is_counted_by_the_formula(d: int) -> None:
    generator = torch.Generator().manual_seed(100 + d)
    horizon, tolerance = 5.0, 0.01
    starts = random_states((SAMPLES, d), generator)
    for strength in (0.5, 1.0, 1.3, 2.0):
        fields = strength * random_states((SAMPLES, d), generator)
        late = settling_time(starts, fields, tolerance) > horizon
        still_away = angle_between(state_after(starts, fields, horizon), fields) > tolerance
        assert torch.equal(late, still_away)
        near = angle_between(starts, -fields).numpy() < failing_angle(strength, horizon, tolerance)
        np.testing.assert_array_equal(late.numpy(), near)
        probability = float(failure_probability(strength, horizon, tolerance, d))
        assert agrees(int(late.sum()), SAMPLES, probability)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_weak_fields_are_as_rare_as_the_formula_says(d: int) -> None:
    generator = torch.Generator().manual_seed(200 + d)
    fields = 0.7 * torch.randn(SAMPLES, d, generator=generator, dtype=torch.float64)
    lengths = fields.norm(dim=-1)
    for limit in (0.01, 0.3, 1.0, 3.0):
        probability = float(weak_field_probability(limit, 0.7, d))
        assert agrees(int((lengths < limit).sum()), SAMPLES, probability)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_sum_of_many_anchors_is_weak_as_often_as_a_gaussian_field(d: int) -> None:
    generator = torch.Generator().manual_seed(300 + d)
    count, tokens = 4000, 256
    weights = 0.5 + torch.rand(tokens, generator=generator, dtype=torch.float64)
    anchors = random_states((count, tokens, d), generator)
    lengths = torch.einsum("t,ntd->nd", weights, anchors).norm(dim=-1)
    spread = math.sqrt(float(weights.square().sum()) / d)
    for share in (0.02, 0.2, 0.5):
        limit = float(lengths.quantile(share))
        # The central limit leaves a difference of the order of one token in 256.
        assert float(weak_field_probability(limit, spread, d)) == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("d", [2, 4, 8, 32])
def test_both_failures_at_once(d: int) -> None:
    generator = torch.Generator().manual_seed(400 + d)
    starts = random_states((SAMPLES, d), generator)
    fields = 0.4 * torch.randn(SAMPLES, d, generator=generator, dtype=torch.float64)
    late = settling_time(starts, fields, 0.05) > 6.0
    probability = gaussian_failure_probability(0.4, 6.0, 0.05, d)
    assert agrees(int(late.sum()), SAMPLES, probability)


def test_failures_become_exponentially_rarer_with_the_dimension() -> None:
    dimensions = [4, 8, 16, 32, 64]
    antipodal = [math.log(float(cap_probability(math.pi / 8, d))) for d in dimensions]
    weak = [math.log(float(weak_field_probability(0.1, 1 / math.sqrt(d), d))) for d in dimensions]
    for logarithms in (antipodal, weak):
        slopes = np.diff(logarithms) / np.diff(dimensions)
        assert (slopes < -0.9).all()
        assert np.ptp(slopes) < 0.25


def test_there_must_be_a_sphere_and_an_angle() -> None:
    with pytest.raises(UsageError, match="at least 2 dimensions"):
        cap_probability(0.1, 1)
    with pytest.raises(UsageError, match="at least 2 dimensions"):
        weak_field_probability(0.1, 1.0, 1)
    with pytest.raises(UsageError, match=r"0\.\.pi"):
        cap_probability([0.1, 3.2], 3)
