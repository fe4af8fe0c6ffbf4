from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.attention.oscillator import OscillatorAttention, settle
from entrain.models.attention.settling import (
    STARTS,
    AdaptiveSettling,
    EulerSettling,
    NoisyStates,
    TimedSettling,
    axis_start,
    disturbed,
    sequential_start,
    with_coupling_noise,
    with_settling,
)
from entrain.models.dynamics import angle_between

D_MODEL, LENGTH = 12, 6


def network(slug: str = "oscillator-softplus", layers: int = 2) -> nn.Sequential:
    torch.manual_seed(0)
    config = AttentionConfig.parse(slug)
    return nn.Sequential(
        *(build_attention(config, D_MODEL, 3, LENGTH) for _ in range(layers))
    ).double()


def tokens(seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(5, LENGTH, D_MODEL, generator=generator, dtype=torch.float64)


def fields(d: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randn(4, 2, LENGTH, d, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("slug", ["oscillator-softplus", "oscillator-separable-d4-p2"])
@pytest.mark.parametrize(("coupling_noise", "state_noise"), [(0.2, 0.0), (0.0, 0.2), (0.2, 0.2)])
def test_the_same_seed_disturbs_alike_and_nothing_stays_behind(
    slug: str, coupling_noise: float, state_noise: float
) -> None:
    model, x = network(slug), tokens()
    quiet = model(x)

    def noisy(seed: int) -> list[Tensor]:
        with disturbed(model, coupling_noise=coupling_noise, state_noise=state_noise, seed=seed):
            return [model(x), model(x)]

    first, second = noisy(7)
    again, again_second = noisy(7)
    assert torch.equal(first, again)
    assert torch.equal(second, again_second)
    assert not torch.allclose(first, quiet)
    # Every batch is disturbed anew, and every seed differently.
    assert not torch.allclose(first, second)
    assert not torch.allclose(first, noisy(8)[0])
    assert torch.equal(model(x), quiet)


def test_layers_are_disturbed_independently() -> None:
    model = network()
    model[1].load_state_dict(model[0].state_dict())
    x = tokens()
    with disturbed(model, coupling_noise=0.3, state_noise=0.0, seed=1):
        assert not torch.allclose(model[0](x), model[1](x))
    torch.testing.assert_close(model[0](x), model[1](x))


def test_an_error_inside_leaves_the_network_as_it_was() -> None:
    model, x = network(), tokens()
    quiet = model(x)
    with (
        pytest.raises(RuntimeError),
        disturbed(model, coupling_noise=0.3, state_noise=0.3, seed=1),
    ):
        raise RuntimeError
    assert torch.equal(model(x), quiet)


def test_contexts_can_stand_inside_each_other() -> None:
    model, x = network(), tokens()
    quiet = model(x)
    with with_settling(model, TimedSettling(0.3), seed=1):
        early = model(x)
    with with_settling(model, TimedSettling(0.3), seed=1):
        with with_coupling_noise(model, 0.5, seed=2):
            both = model(x)
        assert not torch.allclose(both, early)
    assert torch.equal(model(x), quiet)


def test_no_noise_is_no_change() -> None:
    model, x = network("oscillator-separable"), tokens()
    with disturbed(model, coupling_noise=0.0, state_noise=0.0, seed=1):
        inside = model(x)
    assert torch.equal(inside, model(x))


def test_couplings_are_scaled_by_log_normal_errors_and_stay_positive() -> None:
    layer = build_attention(AttentionConfig.parse("oscillator-relu"), 64, 1, 200).double()
    assert isinstance(layer, OscillatorAttention)
    queries = torch.randn(8, 1, 200, 64, dtype=torch.float64)
    exact = layer.coupling.weights(queries, queries, 1 / 64)
    with with_coupling_noise(layer, 0.2, seed=3):
        logarithms = (layer.coupling.weights(queries, queries, 1 / 64) / exact).log()
    assert logarithms.mean().abs() < 0.002
    assert logarithms.std().item() == pytest.approx(0.2, rel=0.01)
    lags = logarithms.flatten()
    assert (lags[1:] * lags[:-1]).mean().abs() < 0.002


def test_noisy_states_stay_on_the_sphere_and_are_as_far_away_as_asked() -> None:
    generator = torch.Generator().manual_seed(4)
    wide = torch.randn(2000, 1, LENGTH, 8, generator=generator, dtype=torch.float64)
    states = NoisyStates(TimedSettling(1e4), 0.01)(wide, generator)
    torch.testing.assert_close(states.norm(dim=-1), torch.ones_like(states[..., 0]))
    # Of eight components seven are along the sphere.
    squared = angle_between(states, wide).square().mean().sqrt().item()
    assert squared == pytest.approx(0.01 * 7**0.5, rel=0.02)


@pytest.mark.parametrize("name", sorted(STARTS))
def test_starts_are_on_the_sphere_and_seeded(name: str) -> None:
    start = STARTS[name]
    states = start(fields(), torch.Generator().manual_seed(1))
    torch.testing.assert_close(states.norm(dim=-1), torch.ones_like(states[..., 0]))
    assert torch.equal(states, start(fields(), torch.Generator().manual_seed(1)))


def test_the_start_on_an_axis_is_never_beyond_a_right_angle() -> None:
    states = axis_start(fields(), torch.Generator())
    assert ((states * fields()).sum(dim=-1) >= 0).all()
    assert torch.equal(states[..., 0].abs(), torch.ones_like(states[..., 0]))


def test_the_sequential_start_is_near_where_the_token_before_rests() -> None:
    states = sequential_start(fields(), torch.Generator().manual_seed(1))
    angles = angle_between(states[..., 1:, :], settle(fields())[..., :-1, :])
    assert 0.01 < angles.mean() < 0.15


@pytest.mark.parametrize(
    "settling", [TimedSettling(0.5), EulerSettling(0.5), AdaptiveSettling(0.5)], ids=type
)
def test_settling_keeps_the_networks_type_and_draws_starts_by_the_seed(settling: object) -> None:
    assert callable(settling)
    model, x = network().float(), tokens().float()
    outputs = []
    for seed in (1, 1, 2):
        with with_settling(model, settling, seed=seed):
            outputs.append(model(x))
    assert outputs[0].dtype == torch.float32
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.allclose(outputs[0], outputs[2])


@pytest.mark.parametrize("settling", [TimedSettling(0.5), EulerSettling(0.5)], ids=type)
def test_a_network_can_learn_through_its_settling(settling: object) -> None:
    assert callable(settling)
    model = network(layers=1)
    with with_settling(model, settling):
        model(tokens()).square().sum().backward()
    for name in ("query.weight", "key.weight", "anchors.vectors"):
        gradient = model[0].get_parameter(name).grad
        assert gradient is not None
        assert gradient.isfinite().all()
        assert gradient.abs().max() > 1e-6


def test_a_network_without_oscillators_cannot_be_disturbed() -> None:
    for context in (
        disturbed(network("softmax"), coupling_noise=0.0, state_noise=0.0, seed=1),
        with_settling(network("softmax"), TimedSettling(1.0)),
    ):
        with pytest.raises(UsageError, match="no oscillators"), context:
            pass


@pytest.mark.parametrize("deviation", [-0.1, float("nan"), float("inf")])
def test_noise_must_be_a_number_from_zero_on(deviation: float) -> None:
    with (
        pytest.raises(UsageError, match="the state noise must be"),
        disturbed(network(), coupling_noise=0.1, state_noise=deviation, seed=1),
    ):
        pass
