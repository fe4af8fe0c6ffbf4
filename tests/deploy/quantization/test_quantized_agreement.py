"""The quantized agreement network, through every form it takes; what no device computes."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import pytest
import torch
from golden_layers import check_layers

from entrain.deploy.errors import CheckpointError, UsageError
from entrain.deploy.export import export_onnx, write_golden_onnx
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.network import read_network
from entrain.deploy.lowering.stage import lower
from entrain.deploy.onnx_session import OnnxSession
from entrain.deploy.quantization.agreement import new_quantized_agreement
from entrain.deploy.quantization.attention.linear import QUANTIZERS
from entrain.deploy.quantization.attention.oscillator import FIELDS
from entrain.deploy.quantization.deployable import FORMS, quantized_form, require_deployable
from entrain.deploy.quantize import calibrate
from entrain.deploy.tasks import find_task
from entrain.models.agreement_task import RECIPE, TrainedAgreement
from entrain.models.attention import AttentionConfig
from entrain.models.attention.couplings import COUPLINGS
from entrain.models.attention.declarations import DECLARATIONS
from entrain.models.attention.linear import FEATURES
from entrain.models.checkpoint import Checkpoint
from entrain.models.data.agreement import LABELS, VOCABULARY, generate_agreement
from entrain.models.networks.agreement import AgreementConfig
from entrain.models.networks.block import BlockStyle
from entrain.models.preparations import Vocabulary

WORDS, LENGTH = 60, 7


def sentences(count, seed):
    return torch.randint(0, WORDS, (count, LENGTH), generator=torch.Generator().manual_seed(seed))


def random_network(slug, **settings):
    """Random weights, statistics of the norms that fit them, and classes that both occur."""
    torch.manual_seed(0)
    config = AgreementConfig(AttentionConfig.parse(slug), WORDS, LENGTH, **settings)
    network = config.build().train()
    with torch.no_grad():
        for seed in range(8):
            network(sentences(64, seed))
        network.eval()
        network.classifier.bias -= network(sentences(256, 49)).mean(dim=0)
    return network


def exported(network, path):
    quantized = new_quantized_agreement(network)
    calibrate(quantized, sentences(256, 50))
    export_onnx(quantized, sentences(1, 51), path)
    return quantized


@pytest.fixture(scope="module")
def of_mechanism(tmp_path_factory):
    """The network of a mechanism, quantized and its file, made when first asked for."""

    @cache
    def made(slug):
        network = random_network(slug)
        path = tmp_path_factory.mktemp("agreement") / "model.onnx"
        return network, exported(network, path), path

    return made


@pytest.mark.parametrize(
    "slug",
    [
        *("softmax", "softmax-base2", "linear-relu", "linear-elu", "lowrank-elu-d3"),
        *("oscillator-relu", "oscillator-separable-rotation"),
    ],
)
def test_the_whole_road_of_a_network(of_mechanism, slug, tmp_path):
    network, quantized, path = of_mechanism(slug)
    asked = sentences(300, 52)
    graph, session = read_network(path, "agreement"), OnnxSession(path, "agreement")
    theirs = np.concatenate([session.run(one[None])[session.outputs[0]] for one in asked.numpy()])
    with torch.no_grad():
        brevitas, real = quantized(asked).numpy(), network(asked).numpy()
    steps = np.abs(brevitas - theirs) / graph.output.scale
    assert (steps < 0.01).mean() > 0.98, "onnxruntime computes what Brevitas does"

    given = asked.numpy().astype(np.uint8)
    ours = np.stack([interpret(graph, one)[graph.output.name][0] for one in given])
    assert (ours.argmax(1) == theirs.argmax(1)).mean() >= 0.99
    assert (ours.argmax(1) == real.argmax(1)).mean() > 0.9, "and that is what the network learned"

    write_golden_onnx(path, asked[:4].numpy(), tmp_path / "golden_onnx.npz")
    # the stage itself compares its C with the interpreter, layer by layer
    model = lower(
        path, tmp_path / "lowered", task="agreement", name="a", features=asked[:4].numpy()
    )
    assert (model.input.dtype, model.input.size, model.output.size) == ("uint8", LENGTH, 2)
    assert model.layers[0].op == "gather"


def test_layers_are_called_as_the_quantized_tensors(of_mechanism):
    _, _, path = of_mechanism("oscillator-relu")
    names = [layer.name for layer in read_network(path, "agreement").layers]
    assert names == [
        *("tokens", "attention_query", "attention_key", "attention_value"),
        *("attention_context", "attended", "expanded", "fed", "verb", "logits"),
    ]


def test_of_several_blocks_each_has_its_own_names(tmp_path):
    exported(random_network("softmax", layers=2, heads=2), tmp_path / "model.onnx")
    names = [layer.name for layer in read_network(tmp_path / "model.onnx", "agreement").layers]
    assert {"blocks_0_attention_query", "blocks_1_attention_query", "blocks_1_fed"} < set(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("positions", ["none", "learned", "sinusoidal"])
def test_positions_of_every_kind_are_added(positions):
    network = random_network("uniform", positions=positions)
    quantized = new_quantized_agreement(network)
    calibrate(quantized, sentences(256, 50))
    with torch.no_grad():
        asked = sentences(200, 53)
        same = quantized(asked).argmax(1) == network(asked).argmax(1)
    assert same.float().mean() > 0.9


def test_the_words_lie_in_one_table_of_int8(of_mechanism):
    _, _, path = of_mechanism("softmax")
    model = onnx.load(path)
    (given,) = model.graph.input
    assert given.type.tensor_type.elem_type == onnx.TensorProto.INT64
    (table,) = [one for one in model.graph.initializer if list(one.dims) == [WORDS, 32]]
    assert table.data_type == onnx.TensorProto.INT8


@pytest.mark.parametrize(
    ("norm", "activation", "slug"),
    [
        ("layer", "gelu", "oscillator-relu"),  # the paper's own style
        ("layer", "relu", "uniform"),
        ("batch", "gelu", "uniform"),
    ],
)
def test_other_norms_and_activations_go_the_whole_road(norm, activation, slug, tmp_path):
    style = BlockStyle(norm, activation, dropout=0.1)
    network, path = random_network(slug, style=style), tmp_path / "model.onnx"
    exported(network, path)
    asked = sentences(200, 52)
    graph, session = read_network(path, "agreement"), OnnxSession(path, "agreement")
    names = [layer.name for layer in graph.layers]
    assert ("attention_norm" in names) == ("head_norm" in names) == (norm == "layer")
    theirs = np.concatenate([session.run(one[None])[session.outputs[0]] for one in asked.numpy()])
    given = asked.numpy().astype(np.uint8)
    ours = np.stack([interpret(graph, one)[graph.output.name][0] for one in given])
    with torch.no_grad():
        real = network(asked).numpy()
    assert (ours.argmax(1) == theirs.argmax(1)).mean() >= 0.97
    assert (ours.argmax(1) == real.argmax(1)).mean() > 0.9

    write_golden_onnx(path, asked[:20].numpy(), tmp_path / "golden_onnx.npz")
    check_layers(graph, tmp_path / "golden_onnx.npz", given)
    lower(path, tmp_path / "lowered", task="agreement", name="a", features=asked[:4].numpy())


@pytest.mark.parametrize("slug", ["relu-normalised", "none"])
def test_attention_without_an_integer_form_is_refused(slug):
    with pytest.raises(UsageError, match="no integer form") as caught:
        require_deployable(AttentionConfig.parse(slug))
    assert caught.value.remedy.endswith(", ".join(FORMS))


@pytest.mark.parametrize("exponent", [0.5, 1.5, 9])
def test_exponents_that_the_device_does_not_compute_are_refused(exponent):
    with pytest.raises(UsageError, match="whole exponents p from 1 to 8"):
        require_deployable(AttentionConfig("oscillator", "relu", exponent=exponent))


def test_what_is_called_deployable_has_a_form():
    for mechanism in FORMS:
        coupling = next(iter(DECLARATIONS[mechanism].takes))
        assert issubclass(quantized_form(AttentionConfig(mechanism, coupling)), torch.nn.Module)
    assert set(FIELDS) == set(COUPLINGS)
    assert set(QUANTIZERS) == set(FEATURES)


def checkpoint_knowing(words):
    config = AgreementConfig(AttentionConfig.parse("uniform"), len(words), LENGTH)
    trained = TrainedAgreement(
        network=config.build(),
        config=config,
        training=RECIPE,
        labels=LABELS,
        vocabulary=words,
        source="templates",
        history=(),
        validation_accuracy=0.5,
        interrupted=False,
    )
    return Checkpoint.of("agreement", trained, Vocabulary(words))


def test_a_network_that_numbers_its_words_otherwise_is_refused():
    task, part = find_task("agreement"), generate_agreement().test
    assert task.inputs(part, checkpoint_knowing(VOCABULARY)) is part.tokens
    with pytest.raises(CheckpointError, match="numbers its words otherwise") as caught:
        task.inputs(part, checkpoint_knowing(VOCABULARY[::-1]))
    assert caught.value.remedy
