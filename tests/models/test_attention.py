from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.attention.couplings import COUPLINGS, disturbed
from entrain.models.attention.oscillator import (
    OscillatorAttention,
    factorised_read_out,
    plain_read_out,
    settle,
)
from entrain.models.attention.projections import ProjectedAttention
from entrain.models.attention.reference import oscillator_weights, rival_weights
from entrain.models.attention.visibility import CHUNK, Visibility

D_MODEL, HEADS, LONGEST = 12, 3, 9
RIVALS = ["softmax", "softmax-base2", "relu-normalised", "linear-relu", "linear-elu"]
RIVALS += ["lowrank-relu", "lowrank-elu-d4"]
OSCILLATORS = ["oscillator-softplus", "oscillator-relu", "oscillator-separable"]
OSCILLATORS += ["oscillator-separable-d3-rotation"]
ALL = ["uniform", *RIVALS, *OSCILLATORS]


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
    anchors = module.unit_anchors(length)
    weights = oscillator_weights(queries, keys, anchors, mask, config)
    expected = module.merge(weights @ values)
    torch.testing.assert_close(
        module(x, padding=padding, causal=causal), expected, rtol=1e-10, atol=1e-10
    )
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))


@settings(max_examples=60, deadline=None)
@given(
    slug=st.sampled_from([*RIVALS, "linear-relu-eps0.5", "relu-normalised-eps0.001"]),
    length=st.integers(1, LONGEST),
    causal=st.booleans(),
    padded=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_every_rival_equals_its_plain_equation(
    slug: str, length: int, causal: bool, padded: bool, seed: int
) -> None:
    module = attention(slug, seed)
    assert isinstance(module, ProjectedAttention)
    x = tokens(length, seed=seed)
    padding = random_padding(length, len(x), seed) if padded else None
    mask = visible(padding, length, len(x), causal).double()
    queries, keys, values = module.project(x)
    expected = module.merge(rival_weights(queries, keys, mask, module.config) @ values)
    torch.testing.assert_close(
        module(x, padding=padding, causal=causal), expected, rtol=1e-10, atol=1e-10
    )


@settings(max_examples=40, deadline=None)
@given(
    length=st.integers(1, 3 * CHUNK + 5),
    features=st.integers(1, 4),
    causal=st.booleans(),
    padded=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_sums_taken_once_equal_those_over_all_pairs(
    length: int, features: int, causal: bool, padded: bool, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    queries, keys, values = (
        torch.randn(2, 3, length, width, generator=generator, dtype=torch.float64)
        for width in (features, features, 5)
    )
    padding = random_padding(length, 2, seed) if padded else None
    sees = Visibility(padding, causal)
    pairs = (queries @ keys.transpose(-1, -2)) * visible(padding, length, 2, causal)
    torch.testing.assert_close(
        sees.weigh(queries, keys, values), pairs @ values, rtol=1e-12, atol=1e-12
    )


@settings(max_examples=40, deadline=None)
@given(
    d_osc=st.integers(2, 6),
    length=st.integers(1, 2 * CHUNK),
    causal=st.booleans(),
    padded=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_the_factorised_read_out_equals_the_plain_one(
    d_osc: int, length: int, causal: bool, padded: bool, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    draw = {"generator": generator, "dtype": torch.float64}
    fields = torch.randn(2, 3, length, d_osc, **draw)
    anchors = settle(torch.randn(1, 3, length, d_osc, **draw))
    values = torch.randn(2, 3, length, 4, **draw)
    sees = Visibility(random_padding(length, 2, seed) if padded else None, causal)
    # States drawn towards the first anchor: the weights of a single visible token do not vanish.
    states = settle(fields + 2 * fields.norm(dim=-1, keepdim=True) * anchors[:, :, :1])
    factorised = factorised_read_out(states, anchors, values, 1.0, sees)
    plain = plain_read_out(states, anchors, values, 1.0, sees)
    torch.testing.assert_close(factorised, plain, rtol=1e-12, atol=1e-12)


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
    expected = module.merge(read)
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


@settings(max_examples=80, deadline=None)
@given(
    slug=st.sampled_from([*ALL, "none", "oscillator-softplus-p2"]),
    now=st.integers(0, LONGEST - 2),
    seed=st.integers(0, 10_000),
)
def test_the_future_changes_nothing_that_is_causal(slug: str, now: int, seed: int) -> None:
    module = attention(slug)
    x, other = tokens(LONGEST, seed=seed), tokens(LONGEST, seed=seed + 1)
    other[:, : now + 1] = x[:, : now + 1]
    before = module(x, causal=True)[:, : now + 1]
    torch.testing.assert_close(module(other, causal=True)[:, : now + 1], before)


@pytest.mark.parametrize("causal", [False, True])
def test_without_attention_nothing_is_added(causal: bool) -> None:
    module = attention("none")
    x = tokens()
    assert torch.equal(module(x, causal=causal), torch.zeros_like(x))
    assert not list(module.parameters())


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
        vectors = module.anchors.vectors
        vectors[:, 1::2] = -vectors[:, :-1:2]
        x = tokens(length=8)
        mean = module.value(x).mean(dim=1, keepdim=True)
    torch.testing.assert_close(module(x), module.output(mean).expand_as(x))


@pytest.mark.parametrize("coupling", sorted(COUPLINGS))
def test_a_coupling_that_is_written_out_pair_by_pair_is_the_same(coupling: str) -> None:
    module = attention(f"oscillator-{coupling}-d3")
    assert isinstance(module, OscillatorAttention)
    padding = random_padding(7, 4, 3)
    exact = module(tokens(), padding=padding, causal=True)
    seen: list[Tensor] = []

    def disturb(strengths: Tensor) -> Tensor:
        seen.append(strengths)
        return strengths * factor

    module.coupling = disturbed(module.coupling, disturb)
    # All strengths twice as large settle at the same states.
    factor = torch.tensor(2.0)
    torch.testing.assert_close(module(tokens(), padding=padding, causal=True), exact)
    assert seen[0].shape == (4, HEADS, 7, 7)
    assert (seen[0] > 0).all()
    factor = torch.rand(7, 7, generator=torch.Generator().manual_seed(1)).double()
    inexact = module(tokens(), padding=padding, causal=True)
    assert not torch.allclose(inexact, exact)
    _, _, values = module.project(tokens())
    mask = visible(padding, 7, 4, causal=True).double()
    fields = (seen[0] * factor * mask) @ module.unit_anchors(7)
    weights = (1 + settle(fields) @ module.unit_anchors(7).transpose(-1, -2)) * mask
    read = weights / weights.sum(-1, keepdim=True) @ values
    torch.testing.assert_close(inexact, module.merge(read))


def test_settling_can_be_replaced() -> None:
    module = attention("oscillator-relu-d3")
    assert isinstance(module, OscillatorAttention)
    fields: list[Tensor] = []

    def rest(field: Tensor) -> Tensor:
        fields.append(field)
        return torch.zeros_like(field)

    module.settling = rest
    x = tokens()
    mean = module.value(x).mean(dim=1, keepdim=True)
    torch.testing.assert_close(module(x), module.output(mean).expand_as(x))
    assert fields[0].shape == (4, HEADS, 7, 3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "slug", ["oscillator-separable", "oscillator-separable-d4", "linear-elu", "lowrank-relu"]
)
def test_what_is_linear_in_the_length_never_forms_a_matrix_of_pairs(
    slug: str, causal: bool
) -> None:
    length = 4 * CHUNK
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
        module(torch.randn(1, length, D_MODEL), causal=causal)
    assert 0 < largest <= HEADS * length * CHUNK


@pytest.mark.parametrize("slug", ALL)
def test_every_parameter_learns(slug: str) -> None:
    module = attention(slug)
    module(tokens()).square().sum().backward()
    for name, parameter in module.named_parameters():
        # Moving every key by the same amount moves no softmax.
        if not (slug.startswith("softmax") and name == "key.bias"):
            used = parameter.grad[:, :7] if name == "anchors.vectors" else parameter.grad
            assert used is not None
            assert used.abs().max() > 1e-6, name


@pytest.mark.parametrize(("slug", "features"), [("lowrank-relu", 3), ("lowrank-elu-d7", 8)])
def test_lowrank_attention_has_as_many_features_as_the_oscillators_read_out(
    slug: str, features: int
) -> None:
    module = attention(slug)
    assert isinstance(module, ProjectedAttention)
    queries, keys, _ = module.project(tokens())
    assert queries.shape == keys.shape == (4, HEADS, 7, features)


@pytest.mark.parametrize("slug", ["uniform", "none", *RIVALS])
def test_multiply_adds_are_those_of_torchs_matrix_products(slug: str) -> None:
    module = attention(slug)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(tokens(length=7, batch=1))
    counted = module.multiply_adds(module.config, D_MODEL, HEADS, 7)
    # The denominator of linear attention sums features, which torch multiplies by one.
    ones = 7 * module.query.out_features if slug.startswith(("linear", "lowrank")) else 0
    assert counter.get_total_flops() == 2 * (counted + ones)


def test_the_heads_must_divide_the_width() -> None:
    with pytest.raises(UsageError, match="10 cannot be divided among 3"):
        build_attention(AttentionConfig(), 10, 3, LONGEST)
