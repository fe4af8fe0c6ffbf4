from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.attention.anchors import (
    ANCHOR_KINDS,
    Anchors,
    LearnedAnchors,
    RotationAnchors,
)
from entrain.models.attention.oscillator import OscillatorAttention
from entrain.models.attention.reference import rotation

HEADS, LONGEST = 3, 9


def anchors(kind: str, d_osc: int = 3, seed: int = 0) -> Anchors:
    torch.manual_seed(seed)
    return ANCHOR_KINDS[kind](HEADS, LONGEST, d_osc).double()


@pytest.mark.parametrize("kind", sorted(ANCHOR_KINDS))
@given(d_osc=st.integers(2, 7), length=st.integers(0, 5), first=st.integers(0, 4))
def test_anchors_are_unit_vectors_that_depend_on_their_position_only(
    kind: str, d_osc: int, length: int, first: int
) -> None:
    module = anchors(kind, d_osc)
    some = module(length, first)
    assert some.shape == (HEADS, length, d_osc)
    torch.testing.assert_close(some.norm(dim=-1), torch.ones(HEADS, length, dtype=torch.float64))
    torch.testing.assert_close(some, module(LONGEST)[:, first : first + length])


@pytest.mark.parametrize("kind", sorted(ANCHOR_KINDS))
def test_anchors_act_by_their_direction_only(kind: str) -> None:
    torch.manual_seed(0)
    slug = "oscillator-relu" if kind == "learned" else f"oscillator-relu-{kind}"
    module = build_attention(AttentionConfig.parse(slug), 12, HEADS, LONGEST)
    assert isinstance(module, OscillatorAttention)
    x = torch.randn(2, LONGEST, 12)
    before = module(x)
    with torch.no_grad():
        vectors = module.get_parameter(f"anchors.{'vectors' if kind == 'learned' else 'origin'}")
        vectors *= torch.rand(*vectors.shape[:-1], 1) + 0.1
    torch.testing.assert_close(module(x), before)


@settings(max_examples=30, deadline=None)
@given(d_osc=st.integers(2, 7), position=st.integers(0, 5000), seed=st.integers(0, 999))
def test_rotating_anchors_turn_by_the_exponential_of_their_generator(
    d_osc: int, position: int, seed: int
) -> None:
    module = anchors("rotation", d_osc, seed)
    assert isinstance(module, RotationAnchors)
    with torch.no_grad():
        module.frequencies.copy_(torch.randn(HEADS, d_osc // 2))
        found = module(1, position)[:, 0]
    for head in range(HEADS):
        turned = rotation(module.frequencies[head].detach(), position, d_osc)
        expected = turned @ (module.origin[head] / module.origin[head].norm()).detach()
        torch.testing.assert_close(found[head], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("heads", "d_osc"), [(1, 2), (2, 2), (3, 5), (4, 64)])
def test_rotating_anchors_begin_apart_and_at_different_speeds(heads: int, d_osc: int) -> None:
    module = RotationAnchors(heads, 25, d_osc)
    speeds = module.frequencies.detach().flatten()
    assert len(speeds.unique()) == heads * (d_osc // 2)
    assert 0.25 < speeds.min() < 0.26  # one turn in 25 positions
    assert speeds.max() < 1
    # No two positions have alike anchors in all heads.
    similarity = (module(25) @ module(25).transpose(-1, -2)).mean(dim=0)
    assert (similarity - torch.eye(25)).max() < 0.99


def test_what_makes_the_anchors_is_learned() -> None:
    for kind, parameters in (("learned", ["vectors"]), ("rotation", ["origin", "frequencies"])):
        module = anchors(kind)
        module(5).mul(torch.randn(HEADS, 5, 3)).sum().backward()
        assert [name for name, _ in module.named_parameters()] == parameters
        for parameter in module.parameters():
            assert parameter.grad is not None
            assert parameter.grad.abs().max() > 1e-6


def test_there_must_be_a_learned_anchor_for_every_token() -> None:
    oscillator = build_attention(AttentionConfig.parse("oscillator-relu"), 12, HEADS, LONGEST)
    with pytest.raises(UsageError, match="10 tokens, but anchors for 9"):
        oscillator(torch.randn(1, 10, 12))
    with pytest.raises(UsageError, match="12 tokens, but anchors for 9"):
        LearnedAnchors(HEADS, LONGEST, 2)(4, 8)


def test_rotating_anchors_have_no_end() -> None:
    config = AttentionConfig.parse("oscillator-separable-d4-rotation")
    oscillator = build_attention(config, 12, HEADS, LONGEST)
    assert oscillator(torch.randn(1, 10 * LONGEST, 12), causal=True).isfinite().all()
