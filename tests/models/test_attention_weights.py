"""The weights read off a mechanism are those of its equation, written out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.attention.oscillator import OscillatorAttention
from entrain.models.attention.projections import ProjectedAttention, split_heads
from entrain.models.attention.reference import oscillator_weights
from entrain.models.attention.weights import attention_weights

TOKENS, HEADS, WIDTH = 5, 2, 16
MECHANISMS = ["softmax", "relu-normalised", "linear-elu", "lowrank-relu", "oscillator-separable"]


def attention(slug: str) -> ProjectedAttention:
    torch.manual_seed(1)
    module = build_attention(AttentionConfig.parse(slug), WIDTH, HEADS, 9).double().eval()
    assert isinstance(module, ProjectedAttention)
    return module


def tokens(length: int = TOKENS) -> Tensor:
    return torch.randn(3, length, WIDTH, dtype=torch.float64, generator=torch.manual_seed(2))


def test_softmax_weights_are_the_softmax_of_the_scores() -> None:
    module = attention("softmax")
    queries = split_heads(module.query(tokens()), HEADS)
    keys = split_heads(module.key(tokens()), HEADS)
    scores = torch.einsum("bhid,bhjd->bhij", queries, keys) / (WIDTH / HEADS) ** 0.5
    expected = scores.exp() / scores.exp().sum(-1, keepdim=True)
    assert torch.allclose(attention_weights(module, tokens()), expected, atol=1e-12)


@pytest.mark.parametrize("slug", ["oscillator-softplus", "oscillator-separable-d4-p2"])
@pytest.mark.parametrize("causal", [False, True])
def test_oscillator_weights_are_those_of_the_printed_equations(slug: str, causal: bool) -> None:
    module = attention(slug)
    assert isinstance(module, OscillatorAttention)
    mask = torch.ones(3, 1, TOKENS, TOKENS, dtype=torch.float64)
    queries, keys, _ = module.project(tokens())
    expected = oscillator_weights(
        queries, keys, module.unit_anchors(TOKENS), mask.tril() if causal else mask, module.config
    )
    found = attention_weights(module, tokens(), causal=causal)
    assert torch.allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("slug", MECHANISMS)
def test_rows_sum_to_one_and_give_back_what_the_attention_reads(slug: str) -> None:
    module, x = attention(slug), tokens()
    padding = torch.tensor([[True] * TOKENS, [True] * 3 + [False] * 2, [True] + [False] * 4])
    weights = attention_weights(module, x, padding=padding)
    assert torch.allclose(weights.sum(-1), torch.ones_like(weights[..., 0]), atol=1e-12)
    assert (weights[1, :, :, 3:].abs() < 1e-12).all()
    values = split_heads(module.value(x), HEADS)
    again = module.merge(weights @ values)
    assert torch.allclose(again, module(x, padding=padding), atol=1e-12)


def test_the_attention_is_left_as_it_is() -> None:
    module = attention("softmax")
    before = module(tokens())
    attention_weights(module, tokens())
    assert torch.equal(module(tokens()), before)


def test_more_tokens_than_a_head_is_wide_are_refused() -> None:
    with pytest.raises(UsageError, match="9 tokens, and a head of width 8"):
        attention_weights(attention("softmax"), tokens(9))
