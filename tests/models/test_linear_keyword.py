from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig
from entrain.models.networks.linear_keyword import (
    LinearKeywordConfig,
    LinearKeywordNetwork,
    count_multiply_adds,
)
from entrain.models.networks.positions import POSITIONS, sinusoids

ALL = ["softmax", "uniform", "none", "linear-elu", "oscillator-softplus", "oscillator-separable"]


def network(slug: str, positions: str = "none", seed: int = 0) -> LinearKeywordNetwork:
    torch.manual_seed(seed)
    return LinearKeywordConfig(AttentionConfig.parse(slug), positions=positions).build().eval()


def features(count: int = 3) -> Tensor:
    return torch.randn(count, 1, 49, 40, generator=torch.Generator().manual_seed(7))


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("slug", ALL)
def test_features_become_one_score_a_word(slug: str, positions: str) -> None:
    model = network(slug, positions)
    assert model(features()).shape == (3, 9)
    assert model.config.tokens == 49


def test_it_is_the_papers_network() -> None:
    model = network("oscillator-softplus")
    assert [model.block.attention.heads, model.block.attention.d_head] == [2, 16]
    assert isinstance(model.block.attention_norm, nn.LayerNorm)
    dropouts = [part.p for part in model.modules() if isinstance(part, nn.Dropout)]
    assert dropouts == [0.1, 0.1]
    # embed; q, k, v, o; two norms; feed-forward; classifier; 2 x 49 anchors of 2 coordinates
    expected = 41 * 32 + 4 * 33 * 32 + 4 * 32 + 33 * 128 + 129 * 32 + 33 * 9 + 2 * 49 * 2
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_network_written_out_gives_the_same(positions: str) -> None:
    model = network("softmax", positions).double()
    clips = features(4).double()
    added = {
        "none": torch.zeros(49, 32),
        "learned": getattr(model.positions, "table", torch.zeros(0)),
        "sinusoidal": sinusoids(49, 32),
    }[positions]
    x = clips[:, 0] @ model.embed.weight.T + model.embed.bias + added.double()
    block = model.block
    normed = nn.functional.layer_norm(
        x, [32], block.attention_norm.weight, block.attention_norm.bias
    )
    x = x + block.attention(normed)
    normed = nn.functional.layer_norm(x, [32], block.feed_norm.weight, block.feed_norm.bias)
    hidden = block.expand(normed)
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
    x = x + block.contract(hidden)
    expected = x.mean(1) @ model.classifier.weight.T + model.classifier.bias
    torch.testing.assert_close(model(clips), expected)


@pytest.mark.parametrize("slug", ["softmax", "uniform", "none", "linear-relu"])
def test_without_positions_or_anchors_the_order_of_frames_is_unknown(slug: str) -> None:
    clips = features()
    shuffled = clips[:, :, torch.randperm(49, generator=torch.Generator().manual_seed(1))]
    torch.testing.assert_close(network(slug)(shuffled), network(slug)(clips), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("slug", "positions"),
    [("oscillator-softplus", "none"), ("softmax", "sinusoidal"), ("softmax", "learned")],
)
def test_anchors_or_positions_tell_places_apart(slug: str, positions: str) -> None:
    model, clips = network(slug, positions), features()
    assert (model(clips.flip(2)) - model(clips)).abs().max() > 1e-4


def test_dropout_is_on_in_training_only() -> None:
    model, clips = network("softmax"), features()
    assert torch.equal(model(clips), model(clips))
    model.train()
    assert not torch.equal(model(clips), model(clips))


@pytest.mark.parametrize("slug", ["softmax", "uniform", "oscillator-relu-p2"])
def test_multiply_adds_are_those_of_torchs_matrix_products(slug: str) -> None:
    model = network(slug)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(features(1))
    config = model.config
    # |h|^2 is an element-wise product, which torch does not count.
    lengths = 2 * 49 * 2 if config.attention.mechanism == "oscillator" else 0
    assert counter.get_total_flops() == 2 * (count_multiply_adds(config) - lengths)


@pytest.mark.parametrize("arguments", [{"classes": 0}, {"positions": "odd"}, {"dropout": 1.0}])
def test_impossible_settings_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        LinearKeywordConfig(AttentionConfig(), **arguments)  # type: ignore[arg-type]
