"""Folding, anchors, and what the quantized modules promise."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from entrain.deploy.errors import UsageError
from entrain.deploy.quantization.activations import ACTIVATIONS
from entrain.deploy.quantization.anchors import (
    FixedAnchors,
    LearnedAnchors,
    fix_anchors,
    rounding_radius,
)
from entrain.deploy.quantization.attention import QuantizedOscillator
from entrain.deploy.quantization.folding import norm_after, norm_before, unfolded
from entrain.deploy.quantization.keyword import new_quantized_keyword
from entrain.deploy.quantization.layers import UNIT_STEPS, gelu, layer_normalised, unit, values
from entrain.deploy.quantization.norms import NORMS
from entrain.deploy.quantize import calibrate
from entrain.models.attention import AttentionConfig, build_attention
from entrain.models.networks import block, norm


def unquantized(network):
    """A context in which every quantizer is switched off."""
    from brevitas.graph.calibrate import quantization_status_manager

    off = {f"disable_{kind}_quant": True for kind in ("act", "weight", "bias")}
    return quantization_status_manager(network, **off)


def trained_norm(kind, channels, seed):
    """A norm in float64 that has seen something."""
    generator = torch.Generator().manual_seed(seed)
    norm = kind(channels).double().eval()
    norm.weight.data = torch.randn(channels, generator=generator).double()
    norm.bias.data = torch.randn(channels, generator=generator).double()
    norm.running_mean = torch.randn(channels, generator=generator).double()
    norm.running_var = torch.rand(channels, generator=generator).double() + 0.01
    return norm


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_a_norm_before_a_linear_map_folds_into_it(inputs, outputs, seed):
    torch.manual_seed(seed)
    norm, linear = trained_norm(nn.BatchNorm1d, inputs, seed), nn.Linear(inputs, outputs).double()
    x = torch.randn(5, inputs).double()
    folded = norm_before(norm, linear)
    expected = linear(norm(x))
    torch.testing.assert_close(x @ folded.weight.t() + folded.bias, expected, atol=1e-10, rtol=0)


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 99))
def test_a_norm_after_a_convolution_folds_into_it(inputs, outputs, seed):
    torch.manual_seed(seed)
    norm = trained_norm(nn.BatchNorm2d, outputs, seed)
    convolution = nn.Conv2d(inputs, outputs, 3, bias=False).double()
    x = torch.randn(2, inputs, 5, 5).double()
    folded = norm_after(convolution.weight, norm)
    computed = nn.functional.conv2d(x, folded.weight, folded.bias)
    torch.testing.assert_close(computed, norm(convolution(x)), atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", norm.NORMS)
@given(st.integers(2, 9), st.integers(0, 99))
def test_a_norm_is_what_is_computed_of_it_and_what_folds_into_the_map_behind(name, width, seed):
    """Without its quantizer: what is computed of a layer norm is the part with mean and root."""
    trained = norm.NORMS[name](width).double().eval()
    generator = torch.Generator().manual_seed(seed)
    for tensor in (trained.weight, trained.bias):
        tensor.data = torch.randn(width, generator=generator).double()
    linear, x = nn.Linear(width, 4).double(), 3 * torch.randn(2, 5, width, generator=generator)
    split = NORMS[name](trained)
    with unquantized(split.computed), torch.no_grad():
        computed = values(split.computed.double().eval()(x.double()))
        expected = linear(trained(x.double()))
    folded = split.before(linear)
    ours = computed @ folded.weight.t() + folded.bias
    torch.testing.assert_close(ours, expected, atol=1e-9, rtol=0)


def test_every_norm_and_activation_of_a_network_has_a_quantized_form():
    assert set(NORMS) == set(norm.NORMS)
    assert set(ACTIVATIONS) == set(block.ACTIVATIONS)


def test_what_is_left_of_a_layer_norm_is_int8_and_has_nothing_to_learn_but_a_step():
    layer, x = layer_normalised(nn.LayerNorm(16, eps=0.5)), torch.randn(4, 5, 16)
    assert len(list(layer.parameters())) == 1
    calibrate(layer, x)
    with torch.no_grad():
        quantized = layer(x)
    assert (float(quantized.bit_width), bool(quantized.signed)) == (8, True)
    assert_rounded(quantized, nn.functional.layer_norm(x, [16], eps=0.5))


def test_gelu_is_of_int8_and_is_int8():
    layer, x = gelu(), 2 * torch.randn(64, 32)
    calibrate(layer, x)
    with torch.no_grad():
        below, result = layer.input_quant(x), layer(x)
    assert below.value.unique().numel() > 100
    assert result.value.min() < 0, "its small negative values are kept"
    assert_rounded(result, nn.functional.gelu(below.value))


def assert_rounded(quantized, reals):
    """Hold a quantized tensor to what it rounds and saturates."""
    step = float(quantized.scale)
    expected = reals.clamp(-128 * step, 127 * step)
    torch.testing.assert_close(values(quantized), expected, atol=0.51 * step, rtol=0)


def test_a_linear_map_alone_stays_as_it_is():
    linear = nn.Linear(3, 2)
    folded = unfolded(linear)
    assert torch.equal(folded.weight, linear.weight)
    assert torch.equal(folded.bias, linear.bias)
    assert not folded.weight.requires_grad


def test_a_norm_without_statistics_cannot_be_folded():
    with pytest.raises(ValueError, match="no running statistics"):
        norm_before(nn.BatchNorm1d(3, track_running_stats=False), nn.Linear(3, 2))


@given(st.integers(2, 64), st.integers(0, 999), st.floats(0.01, 100.0))
def test_anchors_stay_inside_the_unit_sphere_after_rounding(d_osc, seed, length):
    generator = torch.Generator().manual_seed(seed)
    learned = LearnedAnchors(length * torch.randn(2, 7, d_osc, generator=generator))
    rounded = learned.eval()()
    steps = (rounded * UNIT_STEPS).round()
    torch.testing.assert_close(rounded * UNIT_STEPS, steps, atol=1e-4, rtol=0)
    assert (steps.square().sum(dim=-1) <= UNIT_STEPS**2).all()
    assert (rounded.norm(dim=-1) > 1 - (d_osc**0.5 + 1e-3) / UNIT_STEPS).all()


def test_fixed_anchors_are_the_learned_ones_and_constant():
    learned = LearnedAnchors(torch.randn(2, 7, 3))
    holder = nn.ModuleDict({"anchors": learned}).eval()
    before = learned()
    fix_anchors(holder)
    assert isinstance(holder["anchors"], FixedAnchors)
    assert torch.equal(holder["anchors"](), before)
    assert not list(holder.named_parameters())


def test_anchors_learn_through_the_rounding():
    learned = LearnedAnchors(torch.randn(1, 5, 2)).train()
    learned().square().mul(torch.arange(5.0).view(1, 1, 5, 1)).sum().backward()
    assert learned.anchors.grad is not None
    assert learned.anchors.grad.abs().sum() > 0


@pytest.mark.parametrize("slug", ["oscillator-relu-d4", "oscillator-relu-d4-rotation"])
def test_quantization_begins_with_the_anchors_of_the_trained_network(slug):
    oscillator = build_attention(AttentionConfig.parse(slug), d_model=12, heads=3, max_length=9)
    quantized = QuantizedOscillator(oscillator, unfolded, 7)
    trained = oscillator.unit_anchors(7).unsqueeze(0)
    torch.testing.assert_close(quantized.anchors.on_sphere(), rounding_radius(4) * trained)


def test_one_is_the_largest_code_of_a_unit_quantizer():
    quantizer = unit().eval()
    x = torch.tensor([1.0, -1.0, 0.5, 0.0, 2.0])
    steps = values(quantizer(x)) * UNIT_STEPS
    assert steps.round().tolist()[:4] == [127, -127, 64, 0]
    assert abs(steps - steps.round()).max() < 1e-3


def test_a_fractional_exponent_cannot_be_deployed():
    with pytest.raises(UsageError, match=r"not 1\.5"):
        QuantizedOscillator(
            build_attention(AttentionConfig.parse("oscillator-relu-p1.5"), 12, 3, 7), unfolded, 7
        )


@pytest.mark.parametrize("variant", ["softmax", "uniform", "relu", "separable", "softplus"])
def test_before_quantization_sets_in_the_folded_network_is_the_original(exported, variant):
    """With every quantizer switched off, only the folding and the factorised form remain."""
    one = exported(variant)
    x = torch.from_numpy(one.features[:16]).double()
    network = new_quantized_keyword(one.network).double().eval()
    with torch.no_grad(), unquantized(network):
        ours, theirs = network(x), copy.deepcopy(one.network).double()(x)
    # anchors are drawn in so that they can be rounded; all else is equal
    loose = 0.0 if variant in ("softmax", "uniform") else 0.05
    torch.testing.assert_close(ours, theirs, atol=1e-5 + loose, rtol=0)
