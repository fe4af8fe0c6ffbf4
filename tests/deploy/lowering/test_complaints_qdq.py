"""What users of QDQ import run into; each test is called as its complaint is."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_integers import RANDOM, integers
from rewritten import check_unchanged

from entrain.deploy.errors import EntrainError


@pytest.mark.parametrize("opset", [13, 17, 19, 21])
def test_qdq_tensors_of_one_element_as_scale_and_zero_point(model, lower, tmp_path, opset):
    scale, zero = model.constant([0.05]), model.constant([3], "int8")
    q = model.node("QuantizeLinear", model.input(1, 4), scale, zero)
    x = model.node("DequantizeLinear", q, scale, zero)
    w = model.node(
        "DequantizeLinear",
        model.constant(integers(4, 3), "int8"),
        model.constant([0.01]),
        model.constant([0], "int8"),
    )
    b = model.node(
        "DequantizeLinear", model.constant(integers(3), "int32"), model.constant([0.0005])
    )
    y = model.node("Add", model.node("MatMul", x, w), b)
    out, shift = model.constant([0.0431]), model.constant([-2], "int8")
    q = model.node("QuantizeLinear", y, out, shift)
    lower(model, model.node("DequantizeLinear", q, out, shift), opset=opset).check()
    check_unchanged(tmp_path / "small.onnx")


def test_qdq_no_zero_point_at_all(model, lower):
    """Zero, and of type uint8 for a QuantizeLinear."""
    scale = model.constant(0.05)
    q = model.node("QuantizeLinear", model.input(1, 4), scale)
    x = model.node("DequantizeLinear", q, scale)
    q = model.node("QuantizeLinear", model.node("Mul", x, model.constant(0.3)), scale)
    lowered = lower(model, model.node("DequantizeLinear", q, scale))
    lowered.check()
    assert lowered.graph.input.dtype == lowered.graph.output.dtype == "uint8"


def test_qdq_zero_points_for_each_channel(model, lower):
    x = model.quantized(model.input(1, 3, 6, 6), 0.05, -9)
    scales, zeros = RANDOM.uniform(0.01, 0.03, 4), integers(4, low=-20, high=20)
    w = model.weights(integers(4, 3, 3, 3, low=-100, high=100), scales, zeros)
    lower(model, model.quantized(model.node("Conv", x, w), 0.2)).check()


def test_qdq_a_matmul_quantized_for_each_channel(model, lower):
    x = model.quantized(model.input(1, 5, 13), 0.05, 4)
    zeros = integers(7, low=-9, high=9)
    w = model.weights(
        integers(13, 7, low=-100, high=100), RANDOM.uniform(0.01, 0.03, 7), zeros, axis=1
    )
    b = model.constant(RANDOM.normal(size=7))
    y = model.node("Add", model.node("MatMul", x, w), b)
    lower(model, model.quantized(y, 0.2)).check()


def test_qdq_a_matmul_of_transposed_weights_quantized_for_each_row(model, lower):
    """A Linear layer of the dynamo exporter: DequantizeLinear(axis=0), Transpose, MatMul."""
    x = model.quantized(model.input(1, 5, 13), 0.05, 4)
    w = model.weights(integers(7, 13), RANDOM.uniform(0.01, 0.03, 7), axis=0)
    y = model.node("MatMul", x, model.node("Transpose", w, perm=[1, 0]))
    lower(model, model.quantized(y, 0.2)).check()


def test_qdq_a_missing_axis_attribute_means_axis_1(model, lower):
    x = model.quantized(model.input(1, 5, 13), 0.05, 4)
    w = model.node(
        "DequantizeLinear",
        model.constant(integers(13, 7), "int8"),
        model.constant(RANDOM.uniform(0.01, 0.03, 7)),
        model.constant(np.zeros(7), "int8"),
    )
    lower(model, model.quantized(model.node("MatMul", x, w), 0.2)).check()


def test_qdq_a_missing_axis_attribute_of_a_vector_means_its_only_axis(model, lower):
    """Onnxruntime refuses it for several scales and takes it for one; so it is a bias's one."""
    x = model.quantized(model.input(1, 4), 0.05)
    b = model.node("DequantizeLinear", model.constant(integers(3), "int32"), model.constant([0.01]))
    y = model.node("Gemm", x, model.weights(integers(4, 3), 0.01), b)
    lower(model, model.quantized(y, 0.0431)).check()


def test_qdq_a_missing_axis_attribute_where_only_axis_0_would_fit_is_refused(model, lower):
    x = model.quantized(model.input(1, 3, 6, 6), 0.05)
    w = model.node(
        "DequantizeLinear",
        model.constant(integers(4, 3, 3, 3), "int8"),
        model.constant(RANDOM.uniform(0.01, 0.03, 4)),
        model.constant(np.zeros(4), "int8"),
    )
    with pytest.raises(EntrainError) as caught:
        lower(model, model.quantized(model.node("Conv", x, w), 0.2, name="out"))
    assert "4 scales along axis 1" in caught.value.what
    assert "axis" in caught.value.remedy


@pytest.mark.parametrize("symbol", ["batch", "N", "unk__0"])
def test_qdq_a_symbolic_batch_dimension_is_one(model, lower, symbol):
    x = model.quantized(model.input(symbol, 5, 4), 0.05)
    w = model.weights(integers(4, 3), 0.01)
    lowered = lower(model, model.quantized(model.node("MatMul", x, w), 0.1))
    lowered.check()
    assert lowered.graph.input.shape == (1, 5, 4)


def test_qdq_parameters_shared_by_two_tensors(model, lower):
    scale, zero = model.constant(0.05), model.constant(3, "int8")
    q = model.node("QuantizeLinear", model.input(1, 4), scale, zero)
    x = model.node("DequantizeLinear", q, scale, zero)
    q = model.node("QuantizeLinear", model.node("Neg", x), scale, zero)
    lower(model, model.node("DequantizeLinear", q, scale, zero)).check()


def test_qdq_two_dequantizers_of_one_tensor(model, lower):
    """As onnxruntime's tool writes with dedicated pairs."""
    scale, zero = model.constant(0.05), model.constant(3, "int8")
    q = model.node("QuantizeLinear", model.input(1, 4), scale, zero)
    a, b = (model.node("DequantizeLinear", q, scale, zero) for _ in range(2))
    y = model.node("Add", model.node("Relu", a), b)
    lower(model, model.quantized(y, 0.11)).check()


def test_qdq_layer_normalization_of_opset_17(model, lower):
    """One node, between quantizers; its scale and bias may come from DequantizeLinear as well."""
    x = model.quantized(model.input(1, 4, 9), 0.05, 7)
    scale = model.weights(integers(9, low=20), 0.01)
    bias = model.weights(integers(9), 0.005)
    y = model.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
    lowered = lower(model, model.quantized(y, 0.03, -4), opset=17)
    lowered.check()
    assert [layer.title for layer in lowered.graph.layers] == ["normalization"]


def test_qdq_a_blocked_scale_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.05)
    w = model.node(
        "DequantizeLinear",
        model.constant(integers(4, 4), "int8"),
        model.constant(RANDOM.uniform(0.01, 0.03, (2, 4))),
        axis=0,
        block_size=2,
    )
    with pytest.raises(EntrainError) as caught:
        lower(model, model.quantized(model.node("MatMul", x, w), 0.1), opset=21)
    assert "block" in str(caught.value)
