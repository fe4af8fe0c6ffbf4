"""Matrix products and convolutions: integer, whatever their shapes, scales and zero points."""

from __future__ import annotations

import numpy as np
import pytest

from entrain.deploy.errors import UnsupportedOperator

RANDOM = np.random.default_rng(7)


def integers(*shape, low=-127, high=127):
    return RANDOM.integers(low, high, shape, endpoint=True)


def test_matmul_with_odd_extents_and_a_scale_for_each_column(model, lower):
    x = model.quantized(model.input(1, 5, 13), 0.05)
    w = model.weights(integers(13, 7), RANDOM.uniform(0.001, 0.02, 7), axis=1)
    product = model.node("MatMul", x, w)
    lowered = lower(model, model.quantized(product, 0.1))
    lowered.check()
    assert lowered.graph.macs == 5 * 13 * 7


def test_matmul_of_two_activations_over_batched_heads(model, lower):
    x = model.quantized(model.input(1, 2, 5, 6), 0.04, 3)
    y = model.quantized(model.node("Relu", x), 0.02, 0, "uint8")
    transposed = model.node("Transpose", y, perm=[0, 1, 3, 2])
    scores = model.node("MatMul", x, transposed)
    lower(model, model.quantized(scores, 0.2, -5)).check()


def test_matmul_of_one_head_with_weights_of_several(model, lower):
    x = model.quantized(model.input(1, 1, 5, 6), 0.04)
    w = model.weights(integers(1, 3, 6, 4), 0.01)
    lower(model, model.quantized(model.node("MatMul", x, w), 0.1)).check()


def test_gemm_with_bias_and_transposed_weights(model, lower):
    x = model.quantized(model.input(1, 9), 0.05)
    scales = RANDOM.uniform(0.001, 0.02, 5).astype("float32")
    w = model.weights(integers(5, 9), scales)
    b = model.weights(integers(5, low=-3000, high=3000), scales * 0.05, dtype="int32")
    lower(model, model.quantized(model.node("Gemm", x, w, b, transB=1), 0.07, 4)).check()


def test_gemm_with_alpha_and_beta(model, lower):
    x = model.quantized(model.input(1, 9), 0.05)
    w = model.weights(integers(9, 5), 0.01)
    b = model.constant(RANDOM.normal(size=5))
    gemm = model.node("Gemm", x, w, b, alpha=0.5, beta=2.0)
    lower(model, model.quantized(gemm, 0.05)).check()


def test_weights_and_activations_with_zero_points(model, lower):
    x = model.quantized(model.input(1, 4, 11), 0.03, 117, "uint8")
    w = model.weights(integers(11, 6, low=0, high=255), 0.01, 131, "uint8")
    lower(model, model.quantized(model.node("MatMul", x, w), 0.06, 99, "uint8")).check()


def test_asymmetric_weights_take_no_more_flash_than_they_need(model, lower):
    x = model.quantized(model.input(1, 4), 0.03)
    symmetric = model.weights([[0, 64, 128, 255]] * 4, 0.01, 128, "uint8")
    y = model.quantized(model.node("MatMul", x, symmetric), 0.06)
    asymmetric = model.weights([[0, 64, 128, 255]] * 4, 0.01, 20, "uint8")
    lowered = lower(model, model.quantized(model.node("MatMul", y, asymmetric), 0.06))
    lowered.check()
    assert lowered.source["weights.h"].count("int8_t ") == 1
    assert lowered.source["weights.h"].count("int16_t ") == 1


def test_more_than_256_channels(model, lower):
    x = model.quantized(model.input(1, 301), 0.05)
    w = model.weights(integers(301, 300), 0.002)
    lower(model, model.quantized(model.node("MatMul", x, w), 0.1)).check()


@pytest.mark.parametrize("summed", [1, 2])
def test_matmul_over_hardly_anything(model, lower, summed):
    x = model.quantized(model.input(1, 3, summed), 0.05)
    w = model.weights(integers(summed, 2), 0.02)
    lower(model, model.quantized(model.node("MatMul", x, w), 0.05)).check()


CONVOLUTIONS = {
    "plain": ({}, (1, 3, 6, 5), (4, 3, 3, 3)),
    "strided and padded": ({"strides": [2, 1], "pads": [1, 1, 1, 1]}, (1, 3, 7, 6), (4, 3, 3, 3)),
    "dilated": ({"dilations": [2, 3]}, (1, 2, 9, 9), (3, 2, 3, 3)),
    "padded on one side": ({"pads": [0, 2, 1, 0]}, (1, 2, 5, 4), (3, 2, 3, 3)),
    "depthwise": ({"group": 4, "pads": [1, 1, 1, 1]}, (1, 4, 5, 5), (4, 1, 3, 3)),
    "depthwise with two outputs a channel": ({"group": 3}, (1, 3, 5, 5), (6, 1, 3, 3)),
    "in groups": ({"group": 2}, (1, 4, 4, 4), (6, 2, 2, 2)),
    "padded as TensorFlow does": (
        {"auto_pad": "SAME_UPPER", "strides": [2, 3], "dilations": [1, 2]},
        (1, 2, 7, 8),
        (3, 2, 4, 3),
    ),
    "padded below": ({"auto_pad": "SAME_LOWER"}, (1, 2, 5, 4), (3, 2, 2, 2)),
    "not padded": ({"auto_pad": "VALID"}, (1, 2, 5, 4), (3, 2, 2, 2)),
    "over all columns": ({}, (1, 3, 6, 5), (4, 3, 1, 5)),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(model, lower, case):
    attributes, image, kernel = CONVOLUTIONS[case]
    x = model.quantized(model.input(*image), 0.05, 100, "uint8")
    scales = RANDOM.uniform(0.002, 0.02, kernel[0]).astype("float32")
    w = model.weights(integers(*kernel), scales)
    b = model.weights(integers(kernel[0]) * 9, scales * 0.05, dtype="int32")
    y = model.node("Relu", model.node("Conv", x, w, b, **attributes))
    lower(model, model.quantized(y, 0.02, 0, "uint8")).check()


def test_a_float_bias_is_rounded_to_a_fraction_of_a_step(model, lower):
    x = model.quantized(model.input(1, 4), 0.05)
    w = model.weights(np.zeros((4, 3)), 0.01)
    bias = model.constant([0.0246, 0.0254, -0.0246])
    y = model.node("Add", model.node("MatMul", x, w), bias)
    lowered = lower(model, model.quantized(y, 0.05))
    lowered.check()
    assert lowered.host.run(np.zeros(4, "int8")).tolist() == [[0, 1, 0]]


ROWS = {
    "plain": ({}, (1, 3, 9), (4, 3, 3)),
    "strided, dilated and padded unevenly": (
        {"strides": [2], "dilations": [2], "pads": [1, 3]},
        (1, 3, 9),
        (4, 3, 3),
    ),
    "depthwise": ({"group": 3, "pads": [2, 2]}, (1, 3, 9), (3, 1, 5)),
    "in groups": ({"group": 2}, (1, 4, 7), (6, 2, 2)),
    "pointwise": ({}, (1, 5, 7), (3, 5, 1)),
    "padded as TensorFlow does": (
        {"auto_pad": "SAME_UPPER", "strides": [2]},
        (1, 2, 8),
        (3, 2, 4),
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_convolution_over_one_axis_is_one_over_an_image_of_one_row(model, lower, case):
    attributes, row, kernel = ROWS[case]
    x = model.quantized(model.input(*row), 0.05, 100, "uint8")
    scales = RANDOM.uniform(0.002, 0.02, kernel[0]).astype("float32")
    w = model.weights(integers(*kernel), scales)
    b = model.weights(integers(kernel[0]) * 9, scales * 0.05, dtype="int32")
    y = model.node("Relu", model.node("Conv", x, w, b, **attributes))
    lowered = lower(model, model.quantized(y, 0.02, 0, "uint8"))
    lowered.check()
    assert len(lowered.graph.output.shape) == 3
    assert "Convolution" in lowered.operators


VECTORS = {
    "vector by matrix": ((5,), (5, 3)),
    "matrix by vector": ((2, 5), (5,)),
    "vector by vector": ((5,), (5,)),
    "vector by several matrices": ((5,), (2, 5, 3)),
    "several matrices by a vector": ((2, 3, 5), (5,)),
}


@pytest.mark.parametrize("case", VECTORS)
def test_products_with_vectors(model, lower, case):
    left, right = VECTORS[case]
    x = model.quantized(model.input(*left), 0.05, 3)
    w = model.weights(integers(*right), 0.01)
    lowered = lower(model, model.quantized(model.node("MatMul", x, w), 0.0731))
    lowered.check()
    assert lowered.graph.output.shape == (np.zeros(left) @ np.zeros(right)).shape


def test_a_vector_with_a_scale_for_each_element_is_refused(model, lower):
    x = model.quantized(model.input(2, 3), 0.05)
    w = model.weights(integers(3), np.array([0.1, 0.2, 0.3]))
    with pytest.raises(UnsupportedOperator, match="each element of the summed axis"):
        lower(model, model.quantized(model.node("MatMul", x, w), 0.1))


@pytest.mark.parametrize("bias", [(), (1,), (5,), (1, 5), (4, 1), (4, 5)])
def test_gemm_with_every_attribute_and_every_shape_of_bias(model, lower, bias):
    x = model.quantized(model.input(9, 4), 0.05, 3)
    w = model.weights(integers(5, 9), RANDOM.uniform(0.002, 0.02, 5))
    b = model.constant(RANDOM.normal(size=bias))
    gemm = model.node("Gemm", x, w, b, transA=1, transB=1, alpha=-0.7, beta=1.3)
    lower(model, model.quantized(gemm, 0.05)).check()
