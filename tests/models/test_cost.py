from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.attention.linear import LinearAttention
from entrain.models.experiments.workload import Place
from entrain.models.experiments.workloads.cost import LAYERS, Cost, Layer, our_counts


def counts(layer: str, attention: str) -> dict[str, float]:
    return dict(Cost(layer, attention).measure(0, Place(None), lambda _: None).metrics)


@pytest.mark.parametrize(
    ("layer", "attention", "digital", "settling", "read_out"),
    [
        # Table 7: relu coupling.
        ("keyword", "oscillator-relu", 24_402, 14_602, 4_998),
        ("agreement", "oscillator-relu", 441, 261, 99),
        ("tinystories", "oscillator-relu-d8", 563_456, 298_240, 34_048),
        # Table 10: softplus coupling.
        ("keyword", "oscillator-softplus", 67_620, 57_820, 48_216),
        ("agreement", "oscillator-softplus", 1_170, 990, 828),
        ("tinystories", "oscillator-softplus-d8", 860_672, 595_456, 331_264),
    ],
)
def test_the_papers_counts_of_the_oscillator(
    layer: str, attention: str, digital: int, settling: int, read_out: int
) -> None:
    found = counts(layer, attention)
    assert found["paper_digital"] == digital
    assert found["paper_settling_physical"] == settling
    assert found["paper_read_out_physical"] == read_out


@pytest.mark.parametrize(
    ("layer", "digital"), [("keyword", 48_216), ("agreement", 828), ("tinystories", 331_264)]
)
def test_the_papers_counts_of_softmax(layer: str, digital: int) -> None:
    found = counts(layer, "softmax")
    assert found["paper_digital"] == digital
    assert "paper_settling_physical" not in found


@pytest.mark.parametrize(
    # Scores, weighted values and four linear maps, as the paper adds them up outside its tables.
    ("layer", "products"),
    [("keyword", 354_368), ("agreement", 42_048), ("tinystories", 10_502_144)],
)
def test_the_whole_softmax_layer_agrees_with_the_papers_sum(layer: str, products: int) -> None:
    assert counts(layer, "softmax")["multiply_adds"] == products


@pytest.mark.parametrize("attention", ["oscillator-separable", "linear-elu", "uniform", "none"])
def test_what_the_paper_has_no_rule_for_is_left_out(attention: str) -> None:
    assert set(counts("keyword", attention)) == {"multiply_adds", "exponentials", "weighted"}


def test_the_factorised_read_out_and_the_separable_coupling_save_products() -> None:
    softmax, relu, separable = (
        counts("keyword", slug)["multiply_adds"]
        for slug in ("softmax", "oscillator-relu", "oscillator-separable")
    )
    projections = 4 * 49 * 32**2
    # Scores and fields of all pairs, lengths, and the read-out: M, z^T M and z.R
    assert relu == projections + 49**2 * (32 + 2 * 2) + 2 * 49 * 2 + (2 * 49 * 32 + 2 * 49) * 2
    assert separable < relu < softmax
    assert separable == relu - 49**2 * (32 + 2 * 2) + 2 * 49 * 32 * 2


def test_an_exponential_weighs_ten_multiply_adds() -> None:
    found = counts("keyword", "oscillator-softplus")
    assert found["exponentials"] == 2 * 49**2
    assert found["weighted"] == found["multiply_adds"] + 10 * found["exponentials"]
    assert counts("keyword", "oscillator-relu")["exponentials"] == 0


@pytest.mark.parametrize("slug", ["softmax-base2", "softmax"])
def test_a_softmax_takes_one_exponential_a_pair_of_base_2_too(slug: str) -> None:
    assert counts("agreement", slug)["exponentials"] == 9**2
    assert counts("tinystories", slug)["exponentials"] == 4 * 128 * 129 // 2


@pytest.mark.parametrize("slug", ["linear-elu", "lowrank-elu-d3", "linear-relu", "lowrank-relu"])
def test_features_elu_are_charged_an_exponential_each_as_if_all_were_below_zero(slug: str) -> None:
    config = AttentionConfig.parse(slug)
    layer = Layer(tokens=7, heads=2, d_model=8, causal=False)
    attention = build_attention(config, layer.d_model, layer.heads, layer.tokens)
    assert isinstance(attention, LinearAttention)
    features, seen = attention.features, []

    def counted(x: Tensor, epsilon: float) -> Tensor:
        seen.append(x)
        return features(x, epsilon)

    attention.features = counted
    with torch.no_grad():
        attention(torch.randn(1, layer.tokens, layer.d_model))
    takes = config.coupling == "elu"
    exponentials = our_counts(config, layer)["exponentials"]
    assert exponentials == takes * sum(x.numel() for x in seen)
    assert exponentials >= takes * sum(int((x < 0).sum()) for x in seen)


def test_a_causal_uniform_layer_maps_the_mean_of_every_token() -> None:
    assert counts("tinystories", "uniform")["multiply_adds"] == 4_194_304
    config = AttentionConfig.parse("uniform")
    layer = Layer(tokens=7, heads=2, d_model=8, causal=True)
    attention = build_attention(config, layer.d_model, layer.heads, layer.tokens)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        attention(torch.randn(1, layer.tokens, layer.d_model), causal=True)
    assert counter.get_total_flops() == 2 * our_counts(config, layer)["multiply_adds"]


@pytest.mark.parametrize("slug", ["softmax", "uniform", "relu-normalised"])
def test_products_are_those_that_torch_counts(slug: str) -> None:
    config = AttentionConfig.parse(slug)
    layer = Layer(tokens=7, heads=2, d_model=8, causal=False)
    attention = build_attention(config, layer.d_model, layer.heads, layer.tokens)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        attention(torch.randn(1, layer.tokens, layer.d_model))
    assert counter.get_total_flops() == 2 * our_counts(config, layer)["multiply_adds"]


def test_hidden_pairs_cost_nothing() -> None:
    config = AttentionConfig.parse("softmax")
    layer = LAYERS["tinystories"]
    seen = Layer(layer.tokens, layer.heads, layer.d_model, causal=False)
    hidden = 128 * 127 // 2
    saved = our_counts(config, seen)["multiply_adds"] - our_counts(config, layer)["multiply_adds"]
    assert saved == 2 * hidden * 128


@pytest.mark.parametrize("arguments", [{"layer": "dense"}, {"attention": "dense"}])
def test_unknown_names_are_refused(arguments: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        Cost(**arguments)
