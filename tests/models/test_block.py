"""The attention block and what is added to tokens: against the formulas, written out."""

from __future__ import annotations

import math

import pytest
import torch

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig
from entrain.models.networks.block import AttentionBlock, BlockStyle
from entrain.models.networks.positions import POSITIONS

UNIFORM = AttentionConfig("uniform")


@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_block_is_what_its_equation_says(norm: str, activation: str) -> None:
    torch.manual_seed(0)
    block = AttentionBlock(UNIFORM, 8, 1, 16, 5, BlockStyle(norm, activation)).double().eval()
    x = torch.randn(3, 5, 8, dtype=torch.float64)

    def normalised(y: torch.Tensor) -> torch.Tensor:
        if norm == "batch":  # untrained: mean 0 and variance 1
            return y / math.sqrt(1 + 1e-5)
        return (y - y.mean(-1, keepdim=True)) / (
            y.var(-1, keepdim=True, unbiased=False) + 1e-5
        ).sqrt()

    def activated(y: torch.Tensor) -> torch.Tensor:
        if activation == "relu":
            return y.clamp(min=0)
        return y * (1 + torch.erf(y / math.sqrt(2))) / 2

    attended = x + block.attention(normalised(x))
    fed = activated(block.expand(normalised(attended))) @ block.contract.weight.T
    assert torch.allclose(block(x), attended + fed + block.contract.bias, atol=1e-12)


def test_dropout_acts_in_training_only() -> None:
    torch.manual_seed(0)
    block = AttentionBlock(UNIFORM, 8, 1, 16, 5, BlockStyle("layer", "gelu", dropout=0.5))
    x = torch.randn(3, 5, 8)
    assert not torch.equal(block(x), block(x))
    block.eval()
    assert torch.equal(block(x), block(x))


@pytest.mark.parametrize(
    ("style", "message"),
    [
        ({"norm": "group"}, "batch, layer"),
        ({"activation": "tanh"}, "relu, gelu"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_an_unknown_style_is_refused_with_the_choices(style: dict, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        BlockStyle(**style)
    assert message in f"{refusal.value.what} {refusal.value.remedy}"


def test_sinusoidal_positions_are_those_of_the_paper() -> None:
    positions = POSITIONS["sinusoidal"](50, 6)
    added = positions(torch.zeros(1, 50, 6))[0]
    for place in (0, 1, 7, 49):
        for feature in range(6):
            angle = place / 10_000 ** ((feature - feature % 2) / 6)
            expected = math.cos(angle) if feature % 2 else math.sin(angle)
            assert added[place, feature].item() == pytest.approx(expected, abs=1e-5)
    assert "table" not in positions.state_dict()


def test_positions_take_shorter_sequences_and_odd_widths() -> None:
    x = torch.randn(2, 3, 7)
    for name, build in POSITIONS.items():
        placed = build(5, 7)(x)
        assert placed.shape == x.shape
        assert torch.equal(placed, x) == (name == "none")
