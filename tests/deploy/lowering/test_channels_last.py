"""Images with channels last between layers: the same integers, and no permutation left over."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from entrain.deploy.export import export_onnx
from entrain.deploy.lowering.channels_last import channels_last, moved_inwards
from entrain.deploy.lowering.graph import Value
from entrain.deploy.lowering.importer import import_onnx
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.kernels import find_kernel
from entrain.deploy.lowering.network import read_network
from entrain.deploy.lowering.operators.layout import Permute
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.quantization.keyword import new_quantized_keyword
from entrain.deploy.quantize import calibrate
from entrain.models.attention import AttentionConfig
from entrain.models.networks.keyword import KeywordConfig, KeywordNetwork

RANDOM = np.random.default_rng(5)


def convolved(model, x, channels, outputs, kernel, scale=0.05, **attributes):
    """A convolution with an int32 bias, a ReLU, and 8 bits."""
    groups = attributes.get("group", 1)
    step = np.float32(0.5 / (60 * np.sqrt(channels // groups * np.prod(kernel))))
    weights = RANDOM.integers(-127, 128, (outputs, channels // groups, *kernel))
    bias = model.weights(
        RANDOM.integers(-500, 500, outputs), step * np.float32(scale), dtype="int32"
    )
    y = model.node("Conv", x, model.weights(weights, step), bias, **attributes)
    return model.quantized(model.node("Relu", y), 0.05, -128)


def linear(model, x, summed, outputs):
    step = np.float32(0.5 / (60 * np.sqrt(summed)))
    weights = model.weights(RANDOM.integers(-127, 128, (summed, outputs)), step)
    return model.quantized(model.node("MatMul", x, weights), 0.1)


def residual(model):
    x = model.quantized(model.input(1, 3, 8, 6), 0.05, 4)
    x = convolved(model, x, 3, 8, (3, 3), pads=[1, 1, 1, 1])
    y = convolved(model, x, 8, 8, (3, 3), pads=[1, 1, 1, 1], group=8)
    y = convolved(model, y, 8, 8, (1, 1))
    x = model.quantized(model.node("Add", x, y), 0.07, -100)
    x = convolved(model, x, 8, 5, (3, 3), strides=[2, 2])
    return linear(model, model.node("Flatten", x), 5 * 3 * 2, 4)


def over_time(model):
    x = model.quantized(model.input(1, 6, 20), 0.05)
    x = convolved(model, x, 6, 8, (3,), pads=[1, 1])
    x = convolved(model, x, 8, 8, (5,), pads=[4, 0], group=8)
    x = convolved(model, x, 8, 12, (1,))
    pooled = model.node("GlobalAveragePool", x)
    return linear(model, model.node("Flatten", model.quantized(pooled, 0.03)), 12, 4)


def pooled(model):
    x = model.quantized(model.input(1, 1, 12, 9), 0.05)
    x = convolved(model, x, 1, 6, (3, 3), pads=[1, 1, 1, 1])
    x = model.node("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = convolved(model, model.quantized(x, 0.05, 3), 6, 4, (3, 3))
    scaled = model.node("Mul", x, model.constant(RANDOM.uniform(0.5, 1, (4, 1, 1))))
    x = model.quantized(model.node("Sigmoid", model.quantized(scaled, 0.05)), 1 / 256, -128)
    return model.quantized(model.node("MaxPool", x, kernel_shape=[2, 2]), 1 / 256, -128)


def frames(model):
    """Every row of an image becomes a token."""
    x = model.quantized(model.input(1, 1, 7, 8), 0.05)
    x = convolved(model, x, 1, 6, (3, 3), pads=[1, 1, 1, 1], strides=[1, 2])
    tokens = model.node("Transpose", x, perm=[0, 2, 1, 3])
    flat = model.node("Reshape", tokens, model.constant([1, 7, 24], "int64"))
    return linear(model, flat, 24, 5)


NETWORKS = {each.__name__: each for each in (residual, over_time, pooled, frames)}


@pytest.fixture(params=NETWORKS)
def network(request, model, tmp_path):
    """A network as it is imported, and with channels last."""
    model.output(NETWORKS[request.param](model))
    graph = import_onnx(model.save(tmp_path / "small.onnx"), "small")
    return graph, channels_last(graph)


def inputs(graph, count=3):
    limits = np.iinfo(graph.input.dtype)
    shape = (count, *graph.input.shape)
    return RANDOM.integers(limits.min, limits.max, shape, graph.input.dtype, endpoint=True)


def test_every_value_holds_the_same_integers_in_another_order(network):
    graph, turned = network
    for one in inputs(graph):
        before, after = interpret(graph, one), interpret(turned, one)
        for layer, other in zip(graph.layers, turned.layers, strict=True):
            in_order = other.output.from_onnx(before[layer.name])
            np.testing.assert_array_equal(after[layer.name], in_order, err_msg=layer.name)


def test_images_between_layers_have_their_channels_last(network):
    graph, turned = network
    for layer, other in zip(graph.layers[:-1], turned.layers[:-1], strict=True):
        before, after = layer.output.shape, other.output.shape
        if layer.title.endswith("convolution") and len(before) in (3, 4):
            assert after == (1, *before[2:], before[1])


def test_input_and_output_keep_their_order(network):
    graph, turned = network
    assert turned.inputs == graph.inputs
    assert turned.outputs == graph.outputs
    assert turned.layers[-1].output == graph.outputs[0]


def permutations(layer):
    return [n for n in layer.expression.walk() if isinstance(n.operator, Permute)]


def test_a_last_convolution_writes_its_channels_apart(model, lower):
    """As the output has them, in ONNX's order, and its kernel does so."""
    x = convolved(model, model.quantized(model.input(1, 3, 7, 6), 0.05), 3, 9, (3, 3))
    lowered = lower(model, convolved(model, x, 9, 5, (1, 1)))
    last = lowered.graph.layers[-1]
    assert last.output.shape == (1, 5, 5, 4)
    assert find_kernel(last).header == "entrain_matmul.h"
    lowered.check()


def test_so_does_one_that_leads_to_the_output_element_by_element(model, lower):
    x = convolved(model, model.quantized(model.input(1, 3, 7, 6), 0.05), 3, 9, (3, 3))
    x = convolved(model, x, 9, 5, (1, 1))
    x = model.quantized(model.node("Sigmoid", x), 1 / 256, -128)
    lowered = lower(model, model.quantized(model.node("HardSigmoid", x), 1 / 256, -128))
    first, *behind = lowered.graph.layers
    assert first.output.axes == (0, 2, 3, 1)
    assert all(layer.output.axes is None and find_kernel(layer) for layer in behind)
    lowered.check()


def test_an_element_by_element_layer_permutes_nothing(model, tmp_path):
    model.output(residual(model))
    turned = channels_last(import_onnx(model.save(tmp_path / "small.onnx"), "small"))
    added = next(layer for layer in turned.layers if len(layer.inputs) == 2)
    assert added.output.shape == (1, 8, 6, 8)
    assert not permutations(added)


@pytest.mark.parametrize("build", [residual, frames])
def test_weights_are_permuted_where_an_image_is_flattened(model, tmp_path, build):
    model.output(build(model))
    turned = channels_last(import_onnx(model.save(tmp_path / "small.onnx"), "small"))
    assert not permutations(turned.layers[-1])


def test_two_permutations_that_meet_vanish():
    leaf = load(Value("image", (1, 4, 5, 3), "int8", 1.0, 0, "image"))
    moved = moved_inwards(leaf, (0, 2, 3, 1))
    assert moved_inwards(moved, (0, 3, 1, 2)) is leaf


def test_a_convolutional_network_is_kernels_from_its_input_on(network):
    """Its convolutions and sums; the last product is somebody else's."""
    _, turned = network
    for layer in turned.layers:
        if layer.title.endswith("convolution"):
            assert find_kernel(layer), layer.name


def test_all_convolutions_of_the_keyword_network_are_kernels(tmp_path):
    torch.manual_seed(0)
    network = KeywordNetwork(KeywordConfig(AttentionConfig("softmax")))
    quantized = new_quantized_keyword(network)
    calibrate(quantized, torch.randn(16, 1, 49, 40))
    path = tmp_path / "model.onnx"
    export_onnx(quantized, torch.randn(1, 1, 49, 40), path)
    layers = {layer.name: layer for layer in read_network(path, "keyword").layers}
    kernels = {name: find_kernel(layers[name]) for name in ("stem", "depthwise", "pointwise")}
    headers = {name: kernel.header for name, kernel in kernels.items()}
    assert headers["stem"] == "entrain_convolution.h"
    assert headers["depthwise"] == "entrain_depthwise.h"
    assert headers["pointwise"] == "entrain_matmul.h"
    assert find_kernel(layers["tokens"]).header == "entrain_matmul.h"
    assert find_kernel(layers["pooled"]).header == "entrain_pool.h"


def test_what_an_attention_writes_stays_in_its_order(model, lower):
    """Where a convolution takes its tokens for channels; an attention writes by strides alone."""
    x = model.quantized(model.input(1, 6, 8), 0.05)
    q, k, v = (linear(model, x, 8, 8) for _ in range(3))
    scores = model.node("MatMul", q, model.node("Transpose", k, perm=[0, 2, 1]))
    weights = model.node("Softmax", scores, axis=-1)
    context = model.quantized(model.node("MatMul", weights, v), 0.1)
    lowered = lower(model, convolved(model, context, 6, 4, (1,), 0.1))
    assert lowered.graph.layers[3].title == "softmax attention"
    assert lowered.graph.layers[3].output.axes is None
    lowered.check()
