"""The quantized linear keyword network, narrow and with random weights, through every form."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from golden_layers import check_layers

from entrain.deploy.arithmetic import quantize
from entrain.deploy.export import export_onnx, write_golden_onnx
from entrain.deploy.lowering.graph import LoweredGraph
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.network import read_network
from entrain.deploy.lowering.stage import lower
from entrain.deploy.onnx_session import OnnxSession
from entrain.deploy.quantization.linear_keyword import new_quantized_linear_keyword
from entrain.deploy.quantize import calibrate
from entrain.models.attention import AttentionConfig
from entrain.models.networks.linear_keyword import LinearKeywordConfig
from entrain.models.networks.positions import POSITIONS

FRAMES, BANDS, WIDTH = 13, 10, 16
TITLES = {
    "softmax": "softmax attention",
    "oscillator-relu": "oscillator attention",
    "oscillator-softplus": "oscillator attention",
    "oscillator-separable": "oscillator attention",
    "linear-relu": "linear attention",
    "linear-elu": "linear attention",
    "uniform": "mean",
}


def spoken(count, seed):
    """Inputs [count, 1, frames, bands] that differ as words do: a shape, and noise."""
    shapes = torch.randn(9, 1, FRAMES, BANDS, generator=torch.Generator().manual_seed(99))
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(0, 9, (count,), generator=generator)
    return shapes[words] + 0.25 * torch.randn(count, 1, FRAMES, BANDS, generator=generator)


def random_network(slug, positions="sinusoidal"):
    """Random weights, norms that have learned something, and classes that tell the words apart."""
    torch.manual_seed(0)
    config = LinearKeywordConfig(
        AttentionConfig.parse(slug),
        frames=FRAMES,
        bands=BANDS,
        d_model=WIDTH,
        d_feed=2 * WIDTH,
        positions=positions,
    )
    network = config.build().eval()
    with torch.no_grad():
        for norm in (network.block.attention_norm, network.block.feed_norm):
            norm.weight.copy_(torch.rand(WIDTH) + 0.5)
            norm.bias.copy_(0.3 * torch.randn(WIDTH))
        network.classifier.weight.mul_(4.0)
        network.classifier.bias -= network(spoken(256, 49)).mean(dim=0)
    return network


@dataclass(frozen=True)
class Exported:
    network: Any
    quantized: Any
    path: Any
    graph: LoweredGraph


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The network of a mechanism, made when first asked for."""
    torch.set_num_threads(1)
    made = {}

    def make(slug):
        if slug not in made:
            network = random_network(slug)
            quantized = new_quantized_linear_keyword(network)
            calibrate(quantized, spoken(256, 50))
            path = tmp_path_factory.mktemp("linear") / "model.onnx"
            export_onnx(quantized, spoken(1, 51), path)
            made[slug] = Exported(network, quantized, path, read_network(path, "keyword"))
        return made[slug]

    return make


@pytest.mark.parametrize("slug", TITLES)
def test_the_whole_road_of_a_network(exported, slug, tmp_path):
    one, asked = exported(slug), spoken(300, 52)
    graph, session = one.graph, OnnxSession(one.path, "keyword")
    theirs = np.concatenate([session.run(x[None])[session.outputs[0]] for x in asked.numpy()])
    with torch.no_grad():
        brevitas, real = one.quantized(asked).numpy(), one.network(asked).numpy()
    steps = np.abs(brevitas - theirs) / graph.output.scale
    assert (steps < 0.01).mean() > 0.98, "onnxruntime computes what Brevitas does"

    source = graph.input
    given = quantize(asked.numpy()[:, None], source.scale, source.zero_point, source.dtype)
    ours = np.stack([interpret(graph, x)[graph.output.name][0] for x in given])
    # random weights: many of these answers hang on a single step
    assert (ours.argmax(1) == theirs.argmax(1)).mean() >= 0.96
    assert (ours.argmax(1) == real.argmax(1)).mean() > 0.9, "and that is what the network learned"

    golden = tmp_path / "golden_onnx.npz"
    write_golden_onnx(one.path, asked[:20].numpy(), golden)
    check_layers(graph, golden, given)
    # the stage itself compares its C with the interpreter, layer by layer
    lower(
        one.path,
        tmp_path / "lowered",
        task="kws01",
        name="keyword",
        features=asked[:4, None].numpy(),
    )


@pytest.mark.parametrize("slug", TITLES)
def test_attention_is_one_layer_and_nothing_is_left_in_floating_point(exported, slug):
    layers = exported(slug).graph.layers
    context = next(layer for layer in layers if layer.name == "attention_context")
    assert context.title == TITLES[slug]
    kinds = {node.dtype for layer in layers for node in layer.expression.walk()}
    assert not {kind for kind in kinds if kind.startswith("float")}


def test_layers_are_called_as_the_quantized_tensors(exported):
    layers = exported("oscillator-separable").graph.layers
    assert [layer.name for layer in layers] == [
        *("tokens", "attention_norm", "attention_query", "attention_key", "attention_value"),
        *("attention_context", "attended", "feed_norm", "expanded_input_quant", "expanded"),
        *("fed", "pooled", "logits"),
    ]


def test_queries_keys_and_values_are_projected_from_one_normalised_tensor(exported):
    layers = {layer.name: layer for layer in exported("softmax").graph.layers}
    assert layers["attention_norm"].title == layers["feed_norm"].title == "normalization"
    for name in ("attention_query", "attention_key", "attention_value"):
        assert [value.name for value in layers[name].inputs] == ["attention_norm"]


def test_gelu_is_a_table(exported):
    layers = {layer.name: layer for layer in exported("softmax").graph.layers}
    assert (layers["expanded_input_quant"].title, layers["expanded"].title) == (
        "matrix product",
        "lookup",
    )


def test_positions_are_added_with_the_bias_of_the_map_to_tokens(exported):
    (tokens,) = (layer for layer in exported("softmax").graph.layers if layer.name == "tokens")
    assert tokens.title == "matrix product"
    biases = [n for n in tokens.expression.walk() if n.dtype == "int32" and not n.operands]
    assert [node.shape for node in biases if node.shape[-2:] == (FRAMES, WIDTH)]


def test_a_layer_norm_is_written_as_one(exported):
    nodes = onnx.load(exported("softmax").path).graph.node
    norms = [node for node in nodes if node.op_type == "LayerNormalization"]
    assert len(norms) == 2


@pytest.mark.parametrize("positions", POSITIONS)
def test_before_quantization_sets_in_it_is_the_original(positions):
    """With every quantizer switched off, only the folding of the norms' affine halves remains."""
    from brevitas.graph.calibrate import quantization_status_manager

    network = random_network("softmax", positions)
    quantized = new_quantized_linear_keyword(network).double().eval()
    x = spoken(16, 53).double()
    off = {f"disable_{kind}_quant": True for kind in ("act", "weight", "bias")}
    with torch.no_grad(), quantization_status_manager(quantized, **off):
        ours, theirs = quantized(x), copy.deepcopy(network).double()(x)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
