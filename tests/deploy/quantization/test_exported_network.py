"""The whole quantized keyword network, through every form it takes, for each attention."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from golden_layers import check_layers

from entrain.deploy.arithmetic import quantize
from entrain.deploy.arithmetic.coupling import (
    RectifiedCoupling,
    SeparableCoupling,
    TabulatedCoupling,
)
from entrain.deploy.export import OPSET, write_golden_onnx
from entrain.deploy.lowering.importer import import_onnx
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.stage import lower
from entrain.deploy.onnx_session import OnnxSession


def test_the_whole_road_of_a_network(exported, variant, tmp_path):
    """One test a variant: making the network costs more than all that is asked of it."""
    one = exported(variant)
    graph = one.graph
    session = OnnxSession(one.onnx, "keyword")
    theirs = np.concatenate([session.run(x[None])[session.outputs[0]] for x in one.features])

    with torch.no_grad():
        brevitas = one.quantized(torch.from_numpy(one.features)).numpy()
    steps = np.abs(brevitas - theirs) / graph.output.scale
    assert (steps < 0.01).mean() > 0.98, "onnxruntime computes what Brevitas does"
    assert (brevitas.argmax(1) == theirs.argmax(1)).mean() >= 0.99

    source = graph.input
    given = quantize(one.features[:, None], source.scale, source.zero_point, source.dtype)
    ours = np.stack([interpret(graph, x)[graph.output.name][0] for x in given])
    # random weights: many of these answers hang on a single step
    assert (ours.argmax(1) == theirs.argmax(1)).mean() >= 0.96

    with torch.no_grad():
        real = one.network(torch.from_numpy(one.features)).numpy()
    assert (ours.argmax(1) == real.argmax(1)).mean() > 0.9, "and that is what the network learned"

    golden = tmp_path / "golden_onnx.npz"
    write_golden_onnx(one.onnx, one.features[:20], golden)
    check_layers(graph, golden, given)

    # the stage itself compares its C with the interpreter, layer by layer
    model = lower(
        one.onnx,
        tmp_path / "lowered",
        task="kws01",
        name="keyword",
        features=one.features[:8, None],
    )
    assert model.arena_bytes <= 1.1 * model.arena_bound


def test_without_its_recogniser_attention_is_integers_too(exported, variant, tmp_path):
    """Operator by operator, as an attention is lowered that nobody knows."""
    one = exported(variant)
    graph = import_onnx(one.onnx, "keyword")
    golden = tmp_path / "golden_onnx.npz"
    write_golden_onnx(one.onnx, one.features[:4], golden)
    source = graph.input
    given = quantize(one.features[:4, None], source.scale, source.zero_point, source.dtype)
    check_layers(graph, golden, given)


def test_the_file_is_ordinary_qcdq(exported, some_variant):
    model = onnx.load(exported(some_variant).onnx)
    onnx.checker.check_model(model, full_check=True)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", OPSET)]
    operators = {node.op_type for node in model.graph.node}
    assert {"QuantizeLinear", "DequantizeLinear", "Clip", "Conv", "MatMul"} >= operators - {
        *("Add", "Mul", "Div", "Sqrt", "ReduceMean", "ReduceSum", "Softmax", "Softplus"),
        *("Constant", "Gemm", "Relu", "Reshape", "Squeeze", "Transpose", "Unsqueeze", "Identity"),
    }
    assert len(model.graph.input) == 1


def test_layers_are_called_as_the_quantized_tensors(exported):
    names = [layer.name for layer in exported("relu").graph.layers]
    assert names == [
        *("stem", "depthwise", "pointwise", "tokens"),
        *("attention_query", "attention_key", "attention_value", "attention_context"),
        *("attended", "expanded", "fed", "pooled", "logits"),
    ]


def test_export_leaves_the_network_as_it_is(exported):
    quantized = exported("relu").quantized
    learned = [name for name, _ in quantized.named_parameters() if "anchors" in name]
    assert learned, "anchors can still be trained"


def test_no_oscillator_computes_an_exponential(exported):
    for variant in ("relu", "separable", "relu squared"):
        operators = {node.op_type for node in onnx.load(exported(variant).onnx).graph.node}
        assert not operators & {"Exp", "Softmax", "Softplus", "Log", "Sigmoid"}


@pytest.mark.parametrize(
    ("variant", "title"),
    [
        *(("softmax", "softmax attention"), ("softmax to base 2", "softmax attention")),
        *(("linear relu", "linear attention"), ("linear elu", "linear attention")),
        *(("relu", "oscillator attention"), ("separable", "oscillator attention")),
        *(("softplus", "oscillator attention"), ("relu squared", "oscillator attention")),
    ],
)
def test_attention_is_one_layer_of_integers(exported, variant, title):
    layers = exported(variant).graph.layers
    context = next(layer for layer in layers if layer.name == "attention_context")
    assert context.title == title
    read = [f"attention_{name}" for name in ("query", "key", "value")]
    assert [value.name for value in context.inputs] == read
    assert not [
        node for layer in layers for node in layer.expression.walk() if node.dtype == "float32"
    ]


@pytest.mark.parametrize(
    ("variant", "coupling"),
    [
        *(("relu", RectifiedCoupling), ("relu squared", RectifiedCoupling)),
        *(("softplus", TabulatedCoupling), ("separable", SeparableCoupling)),
    ],
)
def test_a_coupling_is_computed_in_its_own_form(exported, variant, coupling):
    """Of unsigned queries and keys relu and separable coupling are one function: not one cost."""
    layers = exported(variant).graph.layers
    context = next(layer for layer in layers if layer.name == "attention_context")
    assert isinstance(context.expression.operator.coupling, coupling)
