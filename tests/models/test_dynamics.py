from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from entrain.deploy.errors import UsageError
from entrain.models.dynamics import (
    adaptive,
    angle_after,
    angle_between,
    euler,
    euler_on_sphere,
    global_order,
    kuramoto_flow,
    kuramoto_flow_by_mean,
    local_order,
    lohe_flow,
    phase_flow,
    random_states,
    settling_time,
    stable_equilibrium,
    state_after,
    unstable_equilibrium,
    vector_of_phase,
    weighted_order,
)


def drawn(d: int, count: int = 40, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Starts on the sphere, and fields of lengths between a tenth and ten."""
    generator = torch.Generator().manual_seed(seed)
    lengths = 10 ** (2 * torch.rand(count, 1, generator=generator, dtype=torch.float64) - 1)
    return random_states((count, d), generator), lengths * random_states((count, d), generator)


def phases_and_couplings(seed: int = 0, tokens: int = 7, k: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    phases = 20 * torch.rand(2, tokens, k, generator=generator, dtype=torch.float64) - 10
    return phases, torch.rand(2, tokens, tokens, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("d", [2, 3, 8, 32])
def test_the_adaptive_integrator_and_the_closed_form_agree(d: int) -> None:
    starts, fields = drawn(d)
    for time in (0.3, 4.0):
        found = adaptive(lambda z, h=fields: lohe_flow(z, h), starts, time)
        torch.testing.assert_close(found, state_after(starts, fields, time), rtol=0, atol=1e-8)


@pytest.mark.parametrize("d", [2, 5])
def test_eulers_error_falls_with_the_step_and_ends_at_the_horizon(d: int) -> None:
    starts, fields = drawn(d)
    exact = adaptive(lambda z: lohe_flow(z, fields), starts, 0.73)
    errors = [
        float((euler_on_sphere(starts, fields, 0.73, step) - exact).abs().max())
        for step in (0.01, 0.005, 0.0025)
    ]
    assert errors[0] < 0.05
    # First order: half the step, half the error.
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.15)
    assert torch.equal(euler_on_sphere(starts, fields, 0.0, 0.1), starts)


def test_euler_stays_on_the_sphere_and_finds_the_equilibrium_with_any_step_that_works() -> None:
    starts, fields = drawn(4)
    for step in (0.01, 0.19):
        states = euler_on_sphere(starts, fields, 300.0, step)
        torch.testing.assert_close(states, stable_equilibrium(fields), rtol=0, atol=1e-9)
        torch.testing.assert_close(states.norm(dim=-1), torch.ones(40, dtype=torch.float64))


def test_a_step_that_overshoots_is_refused_and_one_that_works_is_named() -> None:
    starts, fields = drawn(3)
    fields = 8 * stable_equilibrium(fields)
    with pytest.raises(UsageError, match="overshoots") as refused:
        euler_on_sphere(starts, fields, 1.0, 0.25)
    assert "0.25" in str(refused.value.remedy)
    euler_on_sphere(starts, fields, 1.0, 0.249)


@pytest.mark.parametrize(("horizon", "step"), [(-1.0, 0.1), (math.nan, 0.1), (1.0, 0.0)])
def test_times_that_make_no_sense_are_refused(horizon: float, step: float) -> None:
    with pytest.raises(UsageError):
        euler(torch.zeros_like, torch.ones(2), horizon, step)


def test_an_integrator_that_gives_up_says_so() -> None:
    with pytest.raises(UsageError, match="gave up"):
        # Blows up at t = 1.
        adaptive(lambda x: x.square(), torch.ones(1), 2.0)


@settings(max_examples=50, deadline=None)
@given(
    phase=st.floats(-10, 10),
    strength=st.floats(0, 100),
    direction=st.floats(-math.pi, math.pi),
)
def test_in_two_dimensions_lohes_flow_is_the_phase_equation(
    phase: float, strength: float, direction: float
) -> None:
    phi = torch.tensor(phase, dtype=torch.float64)
    field = strength * vector_of_phase(torch.tensor(direction, dtype=torch.float64))
    # The velocity on the circle: along the tangent (-sin, cos).
    tangent = vector_of_phase(phi + math.pi / 2)
    velocity = phase_flow(phi, field)
    torch.testing.assert_close(
        lohe_flow(vector_of_phase(phi), field), velocity * tangent, rtol=0, atol=1e-12
    )


def test_in_two_dimensions_both_equations_go_the_same_way() -> None:
    starts, fields = drawn(2)
    phases = torch.atan2(starts[:, 1], starts[:, 0])
    moved = adaptive(lambda phi: phase_flow(phi, fields), phases, 0.8)
    torch.testing.assert_close(
        vector_of_phase(moved), state_after(starts, fields, 0.8), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("d", [2, 3, 16])
def test_there_are_exactly_two_equilibria(d: int) -> None:
    starts, fields = drawn(d, count=2000)
    for equilibrium in (stable_equilibrium(fields), unstable_equilibrium(fields)):
        assert lohe_flow(equilibrium, fields).abs().max() < 1e-14
    # |dz/dt| = |h| sin(angle): it vanishes at the angles 0 and pi and nowhere else.
    speeds = lohe_flow(starts, fields).norm(dim=-1)
    angles = angle_between(starts, fields)
    torch.testing.assert_close(speeds, fields.norm(dim=-1) * angles.sin())
    assert speeds.min() > 0


@pytest.mark.parametrize("d", [2, 3, 16])
def test_the_one_attracts_and_the_other_repels(d: int) -> None:
    generator = torch.Generator().manual_seed(d)
    _, fields = drawn(d, count=1)
    field, strength = fields[0], float(fields.norm())
    rest = stable_equilibrium(field)
    # A basis of the tangent space: the directions in which a state may be disturbed.
    basis = torch.linalg.svd(rest[None])[2][1:]
    for sign in (1, -1):
        jacobian = torch.autograd.functional.jacobian(lambda z: lohe_flow(z, field), sign * rest)
        eigenvalues = torch.linalg.eigvals(basis @ jacobian @ basis.T).real
        torch.testing.assert_close(eigenvalues, torch.full_like(eigenvalues, -sign * strength))
    off = torch.nn.functional.normalize(-rest + 1e-6 * random_states((d,), generator), dim=-1)
    torch.testing.assert_close(state_after(off, field, 60 / strength), rest, rtol=0, atol=1e-9)
    torch.testing.assert_close(state_after(-rest, field, 5 / strength), -rest)


def test_the_tangent_of_half_the_angle_decays_exponentially() -> None:
    starts, fields = drawn(6)
    angles, strengths = angle_between(starts, fields), fields.norm(dim=-1)
    later = angle_between(state_after(starts, fields, 0.4), fields)
    torch.testing.assert_close(
        (later / 2).tan(), (angles / 2).tan() * torch.exp(-0.4 * strengths), rtol=1e-9, atol=1e-12
    )
    torch.testing.assert_close(angle_after(angles, strengths, 0.4), later)
    flat = torch.tensor(math.pi, dtype=torch.float64)
    assert float(angle_after(flat, torch.tensor(1.0), 3.0)) == pytest.approx(math.pi, abs=1e-12)


def test_the_settling_time_is_when_the_angle_reaches_the_tolerance() -> None:
    starts, fields = drawn(3)
    times = settling_time(starts, fields, 0.01)
    waiting = times > 0
    arrived = angle_between(state_after(starts, fields, times[:, None]), fields)
    torch.testing.assert_close(
        arrived[waiting], torch.full_like(arrived[waiting], 0.01), rtol=1e-9, atol=0
    )
    assert waiting.sum() > 30


def test_who_is_there_needs_no_time_and_who_is_not_pulled_takes_for_ever() -> None:
    start = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    assert settling_time(start, 3 * start, 0.01).item() == 0
    assert settling_time(start, -start, 0.01).item() == math.inf
    assert settling_time(start, 0 * start, 0.01).item() == math.inf
    assert torch.equal(state_after(start, 0 * start, 5.0), start)
    assert torch.equal(state_after(start, -start, 1e6), start)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), tokens=st.integers(1, 9), k=st.integers(1, 4))
def test_the_circular_mean_gives_kuramotos_coupling(seed: int, tokens: int, k: int) -> None:
    phases, couplings = phases_and_couplings(seed, tokens, k)
    expected = torch.zeros_like(phases)
    for t in range(tokens):
        for u in range(tokens):
            pull = torch.sin(phases[:, u] - phases[:, t])
            expected[:, t] += couplings[:, t, u, None] * pull
    torch.testing.assert_close(kuramoto_flow(phases, couplings), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(
        kuramoto_flow_by_mean(phases, couplings), expected, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("flow", [kuramoto_flow, kuramoto_flow_by_mean])
def test_full_turns_change_nothing(flow: object) -> None:
    assert callable(flow)
    phases, couplings = phases_and_couplings()
    turns = torch.randint(-3, 4, phases.shape, generator=torch.Generator().manual_seed(1))
    turned = phases + 2 * math.pi * turns.double()
    torch.testing.assert_close(flow(turned, couplings), flow(phases, couplings), rtol=0, atol=1e-12)
    half = phases + math.pi * turns.double()
    assert not torch.allclose(flow(half, couplings), flow(phases, couplings))
    torch.testing.assert_close(global_order(turned), global_order(phases))
    fields = torch.randn((*phases.shape, 2), dtype=torch.float64)
    torch.testing.assert_close(phase_flow(turned, fields), phase_flow(phases, fields))


def test_a_lohe_oscillator_on_the_circle_is_a_kuramoto_oscillator_pulled_by_anchors() -> None:
    generator = torch.Generator().manual_seed(4)
    phases = 6 * torch.rand(5, 1, generator=generator, dtype=torch.float64)
    weights = torch.rand(5, generator=generator, dtype=torch.float64)
    # The last token is the oscillator; the others are anchors and are not pulled.
    couplings = torch.zeros(5, 5, dtype=torch.float64)
    couplings[4, :4] = weights[:4]
    field = weights[:4] @ vector_of_phase(phases[:4, 0])
    flow = kuramoto_flow(phases, couplings)
    torch.testing.assert_close(flow[4, 0], phase_flow(phases[4, 0], field))
    assert not flow[:4].any()


def test_kuramoto_oscillators_all_coupled_alike_synchronise() -> None:
    phases = torch.linspace(0, 2.5, 6, dtype=torch.float64)[:, None]
    couplings = torch.ones(6, 6, dtype=torch.float64) / 6
    settled = euler(lambda theta: kuramoto_flow_by_mean(theta, couplings), phases, 30.0, 0.05)
    exact = adaptive(lambda theta: kuramoto_flow(theta, couplings), phases, 30.0)
    torch.testing.assert_close(settled, exact, rtol=0, atol=1e-6)
    assert global_order(phases).item() < 0.8
    assert global_order(settled).item() == pytest.approx(1, abs=1e-9)


def test_order_parameters_by_hand() -> None:
    # Two phases that agree, then two that are opposite.
    phases = torch.tensor([[0.3], [0.3], [1.0], [1.0 + math.pi]], dtype=torch.float64)
    real = torch.tensor([True, True, False, False])
    assert global_order(phases[:2]).item() == pytest.approx(1)
    assert global_order(phases[2:]).item() == pytest.approx(0, abs=1e-12)
    assert global_order(phases).item() == pytest.approx(0.5)
    assert global_order(phases, real).item() == pytest.approx(1)
    causal = local_order(phases, 2)[:, 0]
    torch.testing.assert_close(
        causal, torch.tensor([1, 1, math.cos(0.35), 0], dtype=torch.float64), rtol=0, atol=1e-12
    )
    both_sides = local_order(phases, 3, causal=False)[:, 0]
    assert both_sides[0].item() == pytest.approx(1)
    assert both_sides[3].item() == pytest.approx(0, abs=1e-12)
    weights = torch.tensor([[0, 5.0, 0, 0], [1, 1, 0, 0], [0, 0, 2, 2], [0, 0, 0, 0]])
    attended = weighted_order(phases, weights.double())[:, 0]
    torch.testing.assert_close(
        attended, torch.tensor([1, 1, 0, 0], dtype=torch.float64), rtol=0, atol=1e-12
    )
