from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.attention.couplings import COUPLINGS
from entrain.models.attention.oscillator import OscillatorAttention, settle
from entrain.models.attention.projections import ProjectedAttention, merge_heads
from entrain.models.attention.reference import oscillator_weights

D_MODEL, HEADS, LONGEST = 12, 3, 9
ALL = ["softmax", "uniform", "oscillator-softplus", "oscillator-relu", "oscillator-separable"]


def attention(slug: str, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return build_attention(AttentionConfig.parse(slug), D_MODEL, HEADS, LONGEST).double()


def tokens(length: int = 7, batch: int = 4, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(batch, length, D_MODEL, generator=generator, dtype=torch.float64)


def random_padding(length: int, batch: int, seed: int) -> Tensor:
    """Real tokens in any places, the first always real, so that every token sees one."""
    generator = torch.Generator().manual_seed(seed)
    real = torch.rand(batch, length, generator=generator) < 0.6
    real[:, 0] = True
    return real


def visible(padding: Tensor | None, length: int, batch: int, causal: bool) -> Tensor:
    real = torch.ones(batch, length, dtype=torch.bool) if padding is None else padding
    mask = real[:, None, None, :].expand(batch, 1, length, length)
    order = torch.ones(length, length, dtype=torch.bool)
    return mask & (order.tril() if causal else order)


@settings(max_examples=60, deadline=None)
@given(
    coupling=st.sampled_from(sorted(COUPLINGS)),
    d_osc=st.integers(2, 5),
    exponent=st.sampled_from([1.0, 2.0, 4.0, 0.5]),
    length=st.integers(1, LONGEST),
    causal=st.booleans(),
    padded=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_the_oscillator_equals_the_plain_equations(
    coupling: str,
    d_osc: int,
    exponent: float,
    length: int,
    causal: bool,
    padded: bool,
    seed: int,
) -> None:
    config = AttentionConfig("oscillator", coupling, d_osc, exponent)
    torch.manual_seed(seed)
    module = OscillatorAttention(config, D_MODEL, HEADS, LONGEST).double()
    x = tokens(length, seed=seed)
    padding = random_padding(length, len(x), seed) if padded else None
    mask = visible(padding, length, len(x), causal).double()
    queries, keys, values = module.project(x)
    anchors = module.unit_anchors()[:, :length]
    weights = oscillator_weights(queries, keys, anchors, mask, config)
    expected = module.output(merge_heads(weights @ values))
    torch.testing.assert_close(
        module(x, padding=padding, causal=causal), expected, rtol=1e-10, atol=1e-10
    )
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_softmax_equals_torchs_own(causal: bool, padded: bool) -> None:
    module = attention("softmax")
    assert isinstance(module, ProjectedAttention)
    x = tokens()
    padding = random_padding(7, 4, 3) if padded else None
    queries, keys, values = module.project(x)
    read = F.scaled_dot_product_attention(
        queries, keys, values, attn_mask=visible(padding, 7, 4, causal)
    )
    expected = module.output(merge_heads(read))
    torch.testing.assert_close(module(x, padding=padding, causal=causal), expected)


@pytest.mark.parametrize("causal", [False, True])
def test_uniform_attention_is_the_mean_of_the_visible_values(causal: bool) -> None:
    module = attention("uniform")
    x = tokens()
    padding = random_padding(7, 4, 3)
    mask = visible(padding, 7, 4, causal)[:, 0].double()
    weights = mask / mask.sum(-1, keepdim=True)
    expected = module.output(weights @ module.value(x))
    torch.testing.assert_close(module(x, padding=padding, causal=causal), expected)


@pytest.mark.parametrize("slug", [*ALL, "oscillator-relu-p2"])
def test_padding_and_what_comes_later_have_no_influence(slug: str) -> None:
    module = attention(slug)
    x = tokens()
    padding = torch.tensor([True] * 5 + [False] * 2).expand(4, 7)
    other = x.clone()
    other[:, 5:] = tokens(seed=8)[:, 5:]
    kept = module(x, padding=padding)[:, :5]
    torch.testing.assert_close(module(other, padding=padding)[:, :5], kept)
    torch.testing.assert_close(module(other, causal=True)[:, :5], module(x, causal=True)[:, :5])
    assert not torch.allclose(module(other)[:, :5], module(x)[:, :5])


@pytest.mark.parametrize("slug", [*ALL, "oscillator-separable-p2"])
def test_a_token_that_sees_nothing_reads_out_zero_and_spoils_no_gradient(slug: str) -> None:
    module = attention(slug)
    x = tokens().requires_grad_()
    padding = torch.ones(4, 7, dtype=torch.bool)
    padding[0] = False
    padding[1, 0] = False
    output = module(x, padding=padding, causal=True)
    torch.testing.assert_close(output[0], module.output.bias.expand(7, -1))
    torch.testing.assert_close(output[1, 0], module.output.bias)
    output.square().sum().backward()
    gradients = [x.grad, *(parameter.grad for parameter in module.parameters())]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)


def test_without_a_field_an_oscillator_rests_and_reads_out_uniformly() -> None:
    assert torch.equal(settle(torch.zeros(2, 3)), torch.zeros(2, 3))
    module = attention("oscillator-softplus")
    assert isinstance(module, OscillatorAttention)
    with torch.no_grad():
        # Equal couplings to anchors that cancel out leave no field.
        for projection in (module.query, module.key):
            projection.weight.zero_()
            projection.bias.zero_()
        module.anchors[:, 1::2] = -module.anchors[:, :-1:2]
        x = tokens(length=8)
        mean = module.value(x).mean(dim=1, keepdim=True)
    torch.testing.assert_close(module(x), module.output(mean).expand_as(x))


def test_anchors_act_by_their_direction_only() -> None:
    module = attention("oscillator-relu")
    assert isinstance(module, OscillatorAttention)
    before = module(tokens())
    with torch.no_grad():
        module.anchors *= torch.rand(HEADS, LONGEST, 1) + 0.1
    torch.testing.assert_close(module(tokens()), before)
    torch.testing.assert_close(
        module.unit_anchors().norm(dim=-1), torch.ones(HEADS, LONGEST, dtype=torch.float64)
    )


@pytest.mark.parametrize("slug", ["oscillator-separable", "oscillator-separable-d4"])
def test_the_separable_oscillator_never_forms_a_matrix_of_pairs(slug: str) -> None:
    length = 64
    module = build_attention(AttentionConfig.parse(slug), D_MODEL, HEADS, length)
    largest = 0

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), options=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            result = function(*arguments, **(options or {}))
            if isinstance(result, Tensor):
                largest = max(largest, result.numel())
            return result

    with Watch():
        module(torch.randn(1, length, D_MODEL))
    assert 0 < largest < HEADS * length * length


@pytest.mark.parametrize("slug", ALL)
def test_every_parameter_learns(slug: str) -> None:
    module = attention(slug)
    module(tokens()).square().sum().backward()
    for name, parameter in module.named_parameters():
        # Moving every key by the same amount moves no softmax.
        if (slug, name) != ("softmax", "key.bias"):
            used = parameter.grad[:, :7] if name == "anchors" else parameter.grad
            assert used is not None
            assert used.abs().max() > 1e-6, name


def test_there_must_be_an_anchor_for_every_token() -> None:
    with pytest.raises(UsageError, match="10 tokens, but anchors for 9"):
        attention("oscillator-relu")(tokens(length=10))


def test_the_heads_must_divide_the_width() -> None:
    with pytest.raises(UsageError, match="10 cannot be divided among 3"):
        build_attention(AttentionConfig(), 10, 3, LONGEST)
