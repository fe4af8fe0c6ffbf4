"""The transformer that Kuramoto attention is matched to."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.networks.rotary_language import (
    RotaryAttention,
    RotaryConfig,
    RotaryLanguage,
    rotate,
)
from entrain.models.order import norms_by_depth


def network(attention: str = "rotary") -> RotaryLanguage:
    torch.manual_seed(0)
    config = RotaryConfig(11, 16, 2, 2, 20, context=8, attention=attention)
    return config.build().double()


def tokens(length: int = 8) -> Tensor:
    return torch.randint(0, 11, (3, length), generator=torch.Generator().manual_seed(1))


def test_rotation_turns_each_pair_by_its_own_rate() -> None:
    x = torch.randn(1, 1, 5, 6, dtype=torch.float64)
    turned = rotate(x)
    for place in range(5):
        for pair in range(3):
            number = complex(x[0, 0, place, pair], x[0, 0, place, pair + 3])
            angle = place / 10_000 ** (2 * pair / 6)
            expected = number * complex(math.cos(angle), math.sin(angle))
            assert complex(turned[0, 0, place, pair], turned[0, 0, place, pair + 3]) == (
                pytest.approx(expected)
            )


def test_attention_is_the_softmax_of_turned_queries_and_keys() -> None:
    torch.manual_seed(0)
    layer = RotaryAttention(16, 2).double()
    x = torch.randn(2, 7, 16, dtype=torch.float64)
    projected = layer.projections(x).view(2, 7, 3, 2, 8)
    queries, keys, values = (projected[:, :, part].transpose(1, 2) for part in range(3))
    scores = torch.einsum("bhtc,bhuc->bhtu", rotate(queries), rotate(keys)) / math.sqrt(8)
    future = torch.ones(7, 7).triu(1).bool()
    weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
    read = torch.einsum("bhtu,bhuc->bthc", weights, values).flatten(2)
    torch.testing.assert_close(layer(x), layer.output(read))


@pytest.mark.parametrize("attention", ["rotary", "softmax", "oscillator-relu", "uniform"])
@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_place_sees_no_symbol_after_it(attention: str, place: int) -> None:
    made, text = network(attention), tokens()
    other = text.clone()
    other[:, place + 1 :] = (other[:, place + 1 :] + 1) % 11
    torch.testing.assert_close(made(other)[:, : place + 1], made(text)[:, : place + 1])


def test_the_order_of_the_symbols_matters() -> None:
    text = torch.tensor([[1, 2, 3, 4]])
    other = torch.tensor([[2, 1, 3, 4]])
    assert not torch.allclose(network()(text)[:, -1], network()(other)[:, -1])


def test_norms_by_depth_are_those_of_what_each_layer_adds() -> None:
    made = network()
    norms = norms_by_depth(made, tokens())
    state = made.embed(tokens())
    after = made.stack()[0](state)
    attended, _ = made.stack()[0].increments(state)
    assert norms.state[0] == pytest.approx(after.square().mean(-1).sqrt().max().item())
    assert norms.attention[0] == pytest.approx(attended.square().mean(-1).sqrt().max().item())


def test_it_is_normalised_before_each_layer_and_before_the_head() -> None:
    assert sum(isinstance(part, nn.RMSNorm) for part in network().modules()) == 2 * 2 + 1


def test_impossible_sizes_are_told() -> None:
    with pytest.raises(UsageError, match="even width"):
        RotaryConfig(d_model=12, heads=4)
    with pytest.raises(UsageError, match="positive"):
        RotaryConfig(layers=0)
