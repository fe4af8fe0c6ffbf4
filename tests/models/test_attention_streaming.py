from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.attention.mechanism import AttentionMechanism

D_MODEL, HEADS, D_HEAD = 12, 3, 4
STREAMING = [
    "linear-relu",
    "linear-elu",
    "lowrank-relu-d4",
    "lowrank-elu",
    "uniform",
    "none",
    "oscillator-separable-rotation",
    "oscillator-separable-d5-rotation",
]
PAIRWISE = ["softmax", "softmax-base2", "relu-normalised", "oscillator-softplus", "oscillator-relu"]
PAIRWISE += ["oscillator-separable-p2"]


def attention(slug: str, max_length: int = 50) -> AttentionMechanism:
    torch.manual_seed(3)
    return build_attention(AttentionConfig.parse(slug), D_MODEL, HEADS, max_length).double()


def tokens(length: int, batch: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(4)
    return 3 * torch.randn(batch, length, D_MODEL, generator=generator, dtype=torch.float64)


def decoded(module: AttentionMechanism, x: Tensor) -> tuple[Tensor, set[int]]:
    """The outputs token by token, and every size that the state had."""
    state = module.start(len(x))
    columns, sizes = [], {state.numbers}
    for position in range(x.shape[1]):
        assert state.position == position
        column, state = module.step(x[:, position], state)
        columns.append(column)
        sizes.add(state.numbers)
    return torch.stack(columns, dim=1), sizes


@pytest.mark.parametrize("slug", STREAMING)
@torch.no_grad()
def test_a_thousand_tokens_in_constant_memory_equal_the_full_causal_form(slug: str) -> None:
    module, x = attention(slug), tokens(1000)
    outputs, sizes = decoded(module, x)
    torch.testing.assert_close(outputs, module(x, causal=True), rtol=0, atol=1e-10)
    assert len(sizes) == 1


@pytest.mark.parametrize("d_osc", [2, 5])
def test_the_oscillator_keeps_five_sums_a_head(d_osc: int) -> None:
    # A: d_head x d_osc, and R; M: d_osc x d_head, V, R once more, and N.
    numbers = (D_HEAD + 1) * d_osc + (d_osc + 1) * (D_HEAD + 1)
    module = attention(f"oscillator-separable-d{d_osc}-rotation")
    assert module.start(7).numbers == 7 * HEADS * numbers


def test_a_state_is_not_changed_by_the_step_that_it_begins() -> None:
    module, x = attention("oscillator-separable-rotation"), tokens(3)
    _, state = module.step(x[:, 0], module.start(2))
    first, _ = module.step(x[:, 1], state)
    module.step(x[:, 2], state)
    again, _ = module.step(x[:, 1], state)
    assert torch.equal(first, again)


@torch.no_grad()
def test_layers_above_each_other_are_stepped_together() -> None:
    layers = [attention("oscillator-separable-rotation"), attention("linear-elu")]
    norm = nn.LayerNorm(D_MODEL).double()
    x = tokens(20)
    whole = x
    for layer in layers:
        whole = whole + layer(norm(whole), causal=True)
    states = [layer.start(2) for layer in layers]
    for position in range(20):
        column = x[:, position]
        for index, layer in enumerate(layers):
            added, states[index] = layer.step(norm(column), states[index])
            column = column + added
        torch.testing.assert_close(column, whole[:, position])


@pytest.mark.parametrize("slug", PAIRWISE)
def test_what_needs_every_key_says_so(slug: str) -> None:
    with pytest.raises(UsageError, match="keys of all earlier tokens") as caught:
        attention(slug).start(1)
    assert caught.value.where == f"{slug} attention"
    assert "oscillator-separable" in str(caught.value.remedy)


@torch.no_grad()
def test_learned_anchors_end_the_decoding() -> None:
    module, x = attention("oscillator-separable", max_length=5), tokens(6)
    outputs, _ = decoded(module, x[:, :5])
    torch.testing.assert_close(outputs, module(x[:, :5], causal=True))
    with pytest.raises(UsageError, match="6 tokens, but anchors for 5"):
        decoded(module, x)
