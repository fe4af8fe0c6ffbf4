"""What the papers prove, checked in float64 on the code that the networks run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from torch import Tensor

from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.attention.oscillator import OscillatorAttention
from entrain.models.attention.settling import (
    AdaptiveSettling,
    EulerSettling,
    Settling,
    TimedSettling,
    axis_start,
    with_settling,
)
from entrain.models.dynamics import (
    coherence_energy,
    kuramoto_flow,
    lohe_flow,
    pull_energy,
    random_states,
    retrieval_objective,
    retrieval_weights,
)

D_MODEL, HEADS, LENGTH = 12, 3, 9
SLUGS = [
    f"oscillator-{coupling}{settings}"
    for coupling in ("softplus", "relu", "separable")
    for settings in ("", "-d8", "-p2", "-d3-p4-rotation")
]
# Long enough for every field of these networks, the weakest included.
FOR_EVER = 1e8


def layer_and_tokens(
    slug: str, seed: int, scale: float = 3.0
) -> tuple[OscillatorAttention, Tensor]:
    torch.manual_seed(seed)
    layer = build_attention(AttentionConfig.parse(slug), D_MODEL, HEADS, LENGTH).double()
    assert isinstance(layer, OscillatorAttention)
    return layer, scale * torch.randn(4, LENGTH, D_MODEL, dtype=torch.float64)


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_the_layer_is_the_settled_flow(slug: str, causal: bool, padded: bool) -> None:
    layer, x = layer_and_tokens(slug, seed=len(slug))
    padding = torch.rand(4, LENGTH) < 0.6
    padding[:, 0] = True
    masks = {"padding": padding if padded else None, "causal": causal}
    with torch.no_grad():
        closed_form = layer(x, **masks)
        with with_settling(layer, TimedSettling(FOR_EVER)):
            torch.testing.assert_close(layer(x, **masks), closed_form, rtol=0, atol=1e-6)
        with with_settling(layer, TimedSettling(0.2)):
            assert (layer(x, **masks) - closed_form).abs().max() > 1e-3


@pytest.mark.parametrize("coupling", ["softplus-d4", "relu-d4-eps0.5", "separable-d4-eps0.5"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "settling",
    [AdaptiveSettling(100.0, 1e-9), EulerSettling(100.0, 0.1)],
    ids=["adaptive", "euler"],
)
def test_the_layer_is_the_integrated_flow(coupling: str, causal: bool, settling: Settling) -> None:
    # Moderate scores and a large epsilon: no field so weak that integrating it takes for ever.
    layer, x = layer_and_tokens(f"oscillator-{coupling}", seed=5, scale=0.5)
    padding = torch.ones(4, LENGTH, dtype=torch.bool)
    padding[0, 6:] = False
    with torch.no_grad():
        closed_form = layer(x, padding=padding, causal=causal)
        with with_settling(layer, settling, seed=3):
            settled = layer(x, padding=padding, causal=causal)
    torch.testing.assert_close(settled, closed_form, rtol=0, atol=1e-6)


def test_before_it_has_settled_all_three_ways_to_integrate_agree() -> None:
    layer, x = layer_and_tokens("oscillator-softplus-d3", seed=6)
    with torch.no_grad():
        outputs = []
        for settling in (
            TimedSettling(0.3, axis_start),
            AdaptiveSettling(0.3, start=axis_start),
            EulerSettling(0.3, 1e-4, axis_start),
        ):
            with with_settling(layer, settling):
                outputs.append(layer(x))
        rest = layer(x)
    torch.testing.assert_close(outputs[1], outputs[0], rtol=0, atol=1e-8)
    torch.testing.assert_close(outputs[2], outputs[0], rtol=0, atol=1e-3)
    assert (outputs[0] - rest).abs().max() > 0.01


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), tokens=st.integers(1, 7), k=st.integers(1, 3))
def test_the_kuramoto_increment_is_the_gradient_of_the_coherence(
    seed: int, tokens: int, k: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    theta = 6 * torch.rand(tokens, k, generator=generator, dtype=torch.float64)
    couplings = torch.rand(tokens, tokens, generator=generator, dtype=torch.float64)
    flow = kuramoto_flow(theta, couplings)

    # Each token by itself, whatever the couplings: a causal softmax is not symmetric.
    own = theta.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(coherence_energy(own, theta, couplings), own)
    torch.testing.assert_close(gradient, flow, rtol=0, atol=1e-12)
    width = 1e-5
    for t in range(tokens):
        for j in range(k):
            nudge = torch.zeros_like(theta)
            nudge[t, j] = width
            up, down = (coherence_energy(theta + s * nudge, theta, couplings) for s in (1, -1))
            assert float((up - down) / (2 * width)) == pytest.approx(float(flow[t, j]), abs=1e-8)

    # All tokens at once, where couplings are symmetric.
    symmetric = (couplings + couplings.T) / 2
    whole = theta.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(coherence_energy(whole, whole, symmetric) / 2, whole)
    torch.testing.assert_close(gradient, kuramoto_flow(theta, symmetric), rtol=0, atol=1e-12)


@pytest.mark.parametrize("d", [2, 3, 8])
def test_lohes_flow_is_the_gradient_of_the_pull_along_the_sphere(d: int) -> None:
    generator = torch.Generator().manual_seed(d)
    states = random_states((20, d), generator)
    fields = torch.randn(20, d, generator=generator, dtype=torch.float64)
    free = states.clone().requires_grad_()
    # The energy of the direction alone: its gradient has no part that leaves the sphere.
    energy = pull_energy(torch.nn.functional.normalize(free, dim=-1), fields)
    (gradient,) = torch.autograd.grad(energy, free)
    torch.testing.assert_close(gradient, lohe_flow(states, fields), rtol=0, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(2, 6),
    temperature=st.sampled_from([0.3, 1.0, 2.5]),
)
def test_softmax_solves_the_entropy_regularised_retrieval_problem(
    seed: int, count: int, temperature: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(count, generator=generator, dtype=torch.float64)
    weights = retrieval_weights(scores, temperature)

    def loss(a: np.ndarray) -> float:
        return -float(retrieval_objective(torch.from_numpy(a).clamp(min=0), scores, temperature))

    found = minimize(
        loss,
        np.full(count, 1 / count),
        method="SLSQP",
        bounds=[(1e-12, 1)] * count,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(weights.numpy(), found.x, atol=2e-4)
    best = float(retrieval_objective(weights, scores, temperature))
    # What is reached there is the free energy, and nothing nearby on the simplex is better.
    free_energy = temperature * float(torch.logsumexp(scores / temperature, dim=-1))
    assert best == pytest.approx(free_energy, abs=1e-12)
    others = torch.distributions.Dirichlet(torch.ones(count, dtype=torch.float64)).sample((200,))
    for share in (1.0, 1e-3):
        mixed = (1 - share) * weights + share * others
        assert (retrieval_objective(mixed, scores, temperature) <= best + 1e-12).all()


def test_the_layer_of_softmax_attention_weighs_by_that_solution() -> None:
    torch.manual_seed(0)
    layer = build_attention(AttentionConfig.parse("softmax"), D_MODEL, 1, LENGTH).double()
    x = torch.randn(2, LENGTH, D_MODEL, dtype=torch.float64)
    queries, keys, values = layer.query(x), layer.key(x), layer.value(x)
    weights = retrieval_weights(queries @ keys.transpose(1, 2), D_MODEL**0.5)
    torch.testing.assert_close(layer(x), layer.output(weights @ values))
