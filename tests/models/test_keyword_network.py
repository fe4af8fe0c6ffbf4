from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig
from entrain.models.networks.keyword import (
    KeywordConfig,
    KeywordNetwork,
    count_multiply_adds,
)
from entrain.models.networks.norm import FeatureNorm
from entrain.models.networks.parameters import count_parameters

ALL = ["softmax", "uniform", "oscillator-softplus", "oscillator-relu", "oscillator-separable"]


def network(slug: str, seed: int = 0) -> KeywordNetwork:
    torch.manual_seed(seed)
    return KeywordNetwork(KeywordConfig(AttentionConfig.parse(slug)))


@pytest.mark.parametrize("slug", ALL)
def test_features_become_one_score_a_word_within_the_budget(slug: str) -> None:
    model = network(slug).eval()
    assert model(torch.randn(3, 1, 49, 40)).shape == (3, 9)
    assert count_parameters(model) < 60_000
    assert count_multiply_adds(model.config) < 1_600_000


@pytest.mark.parametrize(
    ("slug", "parameters", "multiply_adds"),
    [
        ("softmax", 46_393, 1_371_632),
        # 100 anchors' coordinates more; fields and a factorised read-out in place of weights.
        ("oscillator-relu", 46_493, 1_349_132),
        ("oscillator-separable", 46_493, 1_321_432),
        ("uniform", 41_689, 1_141_136),
    ],
)
def test_sizes_by_hand(slug: str, parameters: int, multiply_adds: int) -> None:
    model = network(slug)
    assert count_parameters(model) == parameters
    assert count_multiply_adds(model.config) == multiply_adds


@pytest.mark.parametrize("slug", [*ALL, "oscillator-relu-d5-p2", "oscillator-separable-d4-p3"])
def test_multiply_adds_are_those_of_torchs_matrix_products(slug: str) -> None:
    model = network(slug).eval()
    config = model.config
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.randn(1, 1, 49, 40))
    # |h|^2 is an element-wise product that torch does not count. What is counted as a sum here is
    # a product with one there: V, N and R of the factorised read-out, R of the separable field.
    attention, d_head, difference = config.attention, config.d_model // config.heads, 0
    if attention.mechanism == "oscillator":
        difference = -attention.d_osc
        if attention.exponent == 1:
            difference += attention.d_osc + 2 * d_head + 2
        if attention.coupling == "separable":
            difference += 2 * attention.d_osc
    products = count_multiply_adds(config) + difference * config.heads * config.tokens
    assert counter.get_total_flops() == 2 * products


def folded(model: KeywordNetwork, features: Tensor) -> Tensor:
    """The network written out with its documented attributes, in another way."""
    x = features
    for unit, groups, stride in (
        (model.stem, 1, (2, 2)),
        (model.depthwise, 16, (1, 2)),
        (model.pointwise, 1, (1, 1)),
    ):
        norm = unit.norm
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        x = nn.functional.conv2d(
            x,
            unit.convolution.weight * scale[:, None, None, None],
            norm.bias - norm.running_mean * scale,
            stride=stride,
            padding=unit.convolution.weight.shape[-1] // 2,
            groups=groups,
        ).relu()
    frames = torch.stack([x[:, :, frame].reshape(len(x), 320) for frame in range(25)], dim=1)

    def normalised(tokens: Tensor, norm: FeatureNorm) -> Tensor:
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        return tokens * scale + (norm.bias - norm.running_mean * scale)

    block = model.block
    tokens = normalised(frames @ model.embed.weight.T, model.embed_norm) + model.positions
    tokens = tokens + block.attention(normalised(tokens, block.attention_norm))
    hidden = block.expand(normalised(tokens, block.feed_norm)).relu()
    tokens = tokens + block.contract(hidden)
    return model.classifier(normalised(tokens, model.head_norm).mean(dim=1))


@pytest.mark.parametrize("slug", ["softmax", "oscillator-relu"])
def test_every_norm_folds_into_a_linear_map(slug: str) -> None:
    model = network(slug).double()
    features = torch.randn(5, 1, 49, 40, dtype=torch.float64)
    # Norms with a past, so that mean and deviation matter.
    model(3 * features + 1)
    model.eval()
    torch.testing.assert_close(model(features), folded(model, features))


def test_a_feature_norm_takes_its_statistics_over_all_tokens() -> None:
    x = 2 * torch.randn(6, 5, 4) + 3
    normalised = FeatureNorm(4)(x)
    torch.testing.assert_close(normalised.mean(dim=(0, 1)), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(
        normalised.std(dim=(0, 1), correction=0), torch.ones(4), atol=1e-4, rtol=0
    )


def test_other_sizes_fit_together() -> None:
    config = KeywordConfig(
        AttentionConfig("oscillator", "separable"),
        classes=3,
        frames=20,
        bands=13,
        channels=(4, 6),
        d_model=8,
        d_feed=10,
    )
    assert KeywordNetwork(config).eval()(torch.randn(2, 1, 20, 13)).shape == (2, 3)


@pytest.mark.parametrize("arguments", [{"classes": 0}, {"channels": (0, 3)}, {"dropout": 1.0}])
def test_impossible_sizes_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        KeywordConfig(AttentionConfig(), **arguments)  # type: ignore[arg-type]
