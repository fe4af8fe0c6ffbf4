"""Kuramoto attention against its equations, written out token by token, in float64."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention.kuramoto import (
    RADIUS,
    KuramotoAttention,
    NoGates,
    bound,
    kuramoto_pull,
    phase_features,
)
from entrain.models.dynamics import coherence_energy

BATCH, LENGTH, HEADS, K = 2, 9, 3, 5
TURN = 2 * math.pi


def attention(seed: int = 0, **parts: str) -> KuramotoAttention:
    """Random in everything that is learned."""
    torch.manual_seed(seed)
    made = KuramotoAttention(HEADS, K, **parts).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_()
    return made


def phases(seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(BATCH, LENGTH, HEADS, K, generator=generator, dtype=torch.float64)


def plain_weights(layer: KuramotoAttention, theta: Tensor) -> Tensor:
    """The paper's score, one cosine at a time, and its softmax over the tokens up to t."""
    looking, looked_at = (gate.expand_as(theta) for gate in layer.gates(phase_features(theta)))
    weights = torch.zeros(BATCH, HEADS, LENGTH, LENGTH, dtype=torch.float64)
    for head in range(HEADS):
        tau = layer.sharpness[head, 0].exp()
        for t in range(LENGTH):
            rows = []
            for u in range(t + 1):
                drift = layer.frequencies[head] * (t - u)
                cosines = torch.cos(theta[:, t, head] - theta[:, u, head] + drift)
                terms = looking[:, t, head] * looked_at[:, u, head] * cosines
                rows.append(tau / math.sqrt(K) * terms.sum(dim=-1))
            weights[:, head, t, : t + 1] = torch.stack(rows, dim=-1).softmax(dim=-1)
    return weights


def plain_pull(weights: Tensor, theta: Tensor) -> Tensor:
    """sum_u A_tu sin(theta_u - theta_t)."""
    differences = theta[:, None, :] - theta[:, :, None]
    return torch.einsum("bhtu,btuhk->bthk", weights, differences.sin())


def test_the_weights_are_the_softmax_of_the_papers_score() -> None:
    layer, theta = attention(), phases()
    torch.testing.assert_close(
        layer.weights(theta), plain_weights(layer, theta), rtol=0, atol=1e-12
    )


def test_the_pull_is_kuramotos_coupling() -> None:
    layer, theta = attention(), phases()
    weights = plain_weights(layer, theta)
    features = phase_features(theta)
    offered = layer.values.gathered(theta, features)
    mean = torch.einsum("bhtu,buhc->bthc", weights, offered)
    torch.testing.assert_close(
        kuramoto_pull(theta, mean), plain_pull(weights, theta), rtol=0, atol=1e-12
    )


def test_the_increment_is_the_gated_and_bounded_pull() -> None:
    layer, theta = attention(), phases()
    gate = layer.values.gate(phase_features(theta)).view_as(theta)
    gated = gate * plain_pull(plain_weights(layer, theta), theta)
    length = gated.flatten(2).norm(dim=-1)[..., None, None]
    expected = gated / (1 + length**2 / (HEADS * K * RADIUS**2)).sqrt()
    torch.testing.assert_close(layer(theta), expected, rtol=0, atol=1e-12)


def test_the_pull_is_the_gradient_of_the_coherence_energy() -> None:
    layer, theta = attention(), phases()
    weights = layer.weights(theta).detach()
    moved, held = theta.transpose(1, 2).clone().requires_grad_(), theta.transpose(1, 2)
    (gradient,) = torch.autograd.grad(coherence_energy(moved, held, weights), moved)
    torch.testing.assert_close(
        gradient.transpose(1, 2), plain_pull(weights, theta), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("gates", ["softplus", "none"])
@pytest.mark.parametrize("values", ["circular-mean", "linear"])
def test_whole_turns_of_any_phases_change_nothing(gates: str, values: str) -> None:
    layer, theta = attention(gates=gates, values=values), phases()
    turns = torch.randint(-3, 4, theta.shape, generator=torch.Generator().manual_seed(2)).double()
    torch.testing.assert_close(layer(theta + TURN * turns), layer(theta), rtol=0, atol=1e-12)


def test_turning_all_phases_of_a_coordinate_leaves_scores_without_gates() -> None:
    layer, theta = attention(gates="none"), phases()
    turned = theta + torch.randn(HEADS, K, dtype=torch.float64)
    torch.testing.assert_close(layer.weights(turned), layer.weights(theta), rtol=0, atol=1e-12)


def test_gates_see_where_the_phases_stand() -> None:
    """With metric gates only the differences' cosines are invariant, not the score."""
    layer, theta = attention(gates="softplus"), phases()
    turned = theta + torch.randn(HEADS, K, dtype=torch.float64)
    assert not torch.allclose(layer.weights(turned), layer.weights(theta), atol=1e-3)


def test_gates_are_positive_with_mean_one_in_each_head() -> None:
    for gate in attention().gates(phase_features(phases())):
        assert (gate > 0).all()
        torch.testing.assert_close(gate.mean(dim=-1), torch.ones_like(gate[..., 0]))


def test_without_gates_every_coordinate_counts_one() -> None:
    assert all((gate == 1).all() for gate in NoGates(HEADS, K)(phase_features(phases())))


@pytest.mark.parametrize("values", ["circular-mean", "linear"])
@pytest.mark.parametrize("place", [0, 4, LENGTH - 1])
def test_a_token_sees_none_after_it(place: int, values: str) -> None:
    layer, theta = attention(values=values), phases()
    changed = theta.clone()
    changed[:, place + 1 :] = phases(seed=9)[:, place + 1 :]
    changed[:, place] += 1.0
    before, after = layer(theta), layer(changed)
    torch.testing.assert_close(after[:, :place], before[:, :place], rtol=0, atol=1e-12)


def test_the_first_token_stays_where_it_is() -> None:
    """It sees itself only, and attention to itself moves no phase."""
    assert attention()(phases())[:, 0].abs().max() < 1e-15


@given(st.floats(0, 1e6), st.floats(0.01, 10), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_an_increment_keeps_its_direction_and_stays_within_the_radius(
    size: float, radius: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    increment = size * torch.randn(2, 3, HEADS, K, generator=generator, dtype=torch.float64)
    bounded = bound(increment, radius)
    largest = bounded.flatten(2).square().mean(dim=-1).sqrt().max()
    assert largest <= radius * (1 + 1e-12)
    cosine = nn.functional.cosine_similarity(bounded.flatten(2), increment.flatten(2), dim=-1)
    assert size == 0 or (cosine > 1 - 1e-9).all() or size < 1e-7


def test_small_increments_pass_as_they_are() -> None:
    small = 1e-6 * phases()
    torch.testing.assert_close(bound(small), small, rtol=1e-10, atol=0)


def test_every_learned_value_has_a_gradient() -> None:
    layer = attention()
    layer(phases()).square().sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("parts", [{"gates": "nand"}, {"values": "nand"}])
def test_an_unknown_part_is_told(parts: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="nand"):
        KuramotoAttention(HEADS, K, **parts)
