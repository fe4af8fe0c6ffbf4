"""What users of Brevitas's export run into; each test is called as its complaint is."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from drawn_integers import RANDOM, integers
from rewritten import check_unchanged

from entrain.deploy.errors import ModelError


def test_brevitas_weight_only_quantization_is_refused_by_the_inputs_name(model, lower):
    """Weights alone are quantized: nobody knows which integers the device would get."""
    product = model.node("MatMul", model.input(1, 4), model.weights(integers(4, 3), 0.01))
    with pytest.raises(ModelError) as caught:
        lower(model, model.quantized(product, 0.1))
    assert "input features is not quantized" in caught.value.what
    assert "begin the model with QuantizeLinear" in caught.value.remedy


def test_brevitas_weight_only_quantization_of_a_later_layer_stays_integer(model, lower):
    """What the layer reads was never quantized: its integers are as wide as they have to be."""
    x = model.quantized(model.input(1, 4), 0.1)
    hidden = model.node("Relu", model.node("MatMul", x, model.weights(integers(4, 3), 0.01)))
    product = model.node("MatMul", hidden, model.weights(integers(3, 3), 0.01))
    lower(model, model.quantized(product, 1.31)).check()


def test_brevitas_a_bias_without_an_input_scale_is_a_float(model, lower):
    """Where Int32Bias would need an input scale the bias is exported unquantized."""
    x = model.quantized(model.input(1, 9), 0.05)
    gemm = model.node(
        "Gemm", x, model.weights(integers(9, 5), 0.01), model.constant(RANDOM.normal(size=5))
    )
    lower(model, model.quantized(gemm, 0.0531)).check()


@pytest.mark.parametrize("channels", [1, 5])
def test_brevitas_four_bit_weights_with_a_clip(model, lower, tmp_path, channels):
    """INT8 constant, Clip(-8, 7), DequantizeLinear; the constant may lie beyond the Clip."""
    x = model.quantized(model.input(1, 9), 0.05)
    stored = model.constant(integers(5, 9, low=-20, high=20), "int8")
    bounds = [model.constant(bound, "int8") for bound in (-8, 7)]
    scales = model.constant(RANDOM.uniform(0.05, 0.2, channels) if channels > 1 else 0.1)
    zeros = model.constant(np.zeros(channels) if channels > 1 else 0, "int8")
    w = model.node("DequantizeLinear", model.node("Clip", stored, *bounds), scales, zeros, axis=0)
    lowered = lower(model, model.quantized(model.node("Gemm", x, w, transB=1), 0.1))
    lowered.check()
    check_unchanged(tmp_path / "small.onnx")
    ((name, array),) = [
        (node.operator, node.operator.array)
        for node in lowered.graph.layers[0].expression.walk()
        if type(node.operator).__name__ == "Constant" and node.shape == (5, 9)
    ]
    assert array.min() == -8, name
    assert array.max() == 7


def test_brevitas_four_bit_activations_with_a_clip(model, lower, tmp_path):
    x = model.quantized(model.input(1, 9), 0.05)
    product = model.node("MatMul", x, model.weights(integers(9, 5), 0.01))
    q = model.quantize(product, 0.3, 0, "uint8")
    q = model.node("Clip", q, model.constant(0, "uint8"), model.constant(15, "uint8"))
    y = model.node("DequantizeLinear", q, model.constant(0.3), model.constant(0, "uint8"))
    lower(model, model.quantized(model.node("Neg", y), 0.3)).check()
    check_unchanged(tmp_path / "small.onnx")


@pytest.mark.parametrize("off", [0.49, -0.3, 0.01])
def test_brevitas_a_bias_off_its_grid_by_less_than_a_step(model, lower, off):
    """An int32 bias whose scale is not quite that of input times weight."""
    x = model.quantized(model.input(1, 9), 0.05)
    scales = RANDOM.uniform(0.001, 0.02, 5).astype("float32")
    w = model.weights(integers(5, 9), scales)
    b = model.weights(integers(5, low=1, high=9), scales * 0.05 * (1 + off), dtype="int32")
    lowered = lower(model, model.quantized(model.node("Gemm", x, w, b, transB=1), 0.0431))
    lowered.check()


def test_brevitas_a_bias_on_its_grid_costs_no_second_term(model, lower):
    x = model.quantized(model.input(1, 9), 0.05)
    scales = RANDOM.uniform(0.001, 0.02, 5).astype("float32")
    w = model.weights(integers(5, 9), scales)
    step = np.float32(0.05) * scales
    b = model.weights(integers(5, low=-3000, high=3000), step, dtype="int32")
    lowered = lower(model, model.quantized(model.node("Gemm", x, w, b, transB=1), 0.0431))
    lowered.check()
    (requantize,) = (
        node.operator
        for node in lowered.graph.layers[0].expression.walk()
        if type(node.operator).__name__ == "Requantize"
    )
    assert requantize.terms == 1


def test_brevitas_a_network_with_two_inputs(road, tmp_path):
    """Exported by Brevitas itself; each input has a quantizer of its own."""
    import brevitas.nn as qnn
    import torch
    from brevitas.export import export_onnx_qcdq
    from brevitas.quant import Int8ActPerTensorFloat, Int8WeightPerChannelFloat

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.total = (
                qnn.QuantIdentity(act_quant=Int8ActPerTensorFloat) for _ in range(3)
            )
            self.linear = qnn.QuantLinear(6, 4, bias=True, weight_quant=Int8WeightPerChannelFloat)

        def forward(self, features, more):
            return self.total(self.linear(self.first(features)) + self.second(more))

    torch.manual_seed(0)
    network = Both()
    inputs = (torch.randn(8, 6), torch.randn(8, 4))
    network.train()(*inputs)
    path = tmp_path / "two.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export_onnx_qcdq(
            network.eval(), tuple(x[:1] for x in inputs), export_path=str(path), dynamo=False
        )
    lowered = road.from_file(path, tmp_path / "lowered")
    assert [value.shape for value in lowered.graph.inputs] == [(1, 6), (1, 4)]
    lowered.check()
