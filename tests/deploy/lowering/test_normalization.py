"""Vectors of length 1 and normalized layers, as one node or written out, in integers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

RANDOM = np.random.default_rng(13)


def one_node(model, x, gamma, beta, epsilon):
    inputs = [x, model.constant(gamma), model.constant(beta)]
    return model.node("LayerNormalization", *inputs, axis=-1, epsilon=epsilon)


def centred(model, x):
    return model.node("Sub", x, model.node("ReduceMean", x, axes=[-1], keepdims=1))


def deviation(model, vector, epsilon):
    squared = model.node("Pow", vector, model.constant(2.0))
    variance = model.node("ReduceMean", squared, axes=[-1], keepdims=1)
    return model.node("Sqrt", model.node("Add", variance, model.constant(epsilon)))


def written_out(model, x, gamma, beta, epsilon):
    """As PyTorch exports a LayerNorm below opset 17."""
    vector = centred(model, x)
    normal = model.node("Div", vector, deviation(model, vector, epsilon))
    return model.node("Add", model.node("Mul", normal, model.constant(gamma)), model.constant(beta))


def by_reciprocal(model, x, gamma, beta, epsilon):
    vector = centred(model, x)
    inverse = model.node("Reciprocal", deviation(model, vector, epsilon))
    normal = model.node("Mul", inverse, vector)
    return model.node("Add", model.node("Mul", normal, model.constant(gamma)), model.constant(beta))


def formula(x, gamma, beta, epsilon):
    """In double precision."""
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta


LAYER_NORMS = [one_node, written_out, by_reciprocal]


def parameters(width):
    return RANDOM.uniform(0.2, 2.0, width), RANDOM.normal(0.0, 0.5, width)


@pytest.mark.parametrize("layer_norm", LAYER_NORMS)
@pytest.mark.parametrize("width", [3, 32, 100])
def test_layer_normalization_is_its_formula(model, lower, layer_norm, width):
    gamma, beta = parameters(width)
    x = model.quantized(model.input(1, 5, width), 0.05, 7)
    y = layer_norm(model, x, gamma, beta, 1e-5)
    lowered = lower(model, model.quantized(y, 0.04, -3))
    lowered.check(equal=0.98)
    assert [layer.title for layer in lowered.graph.layers] == ["normalization"]
    inputs = lowered.random_inputs(20)
    real = formula((inputs.astype(float) - 7) * float(np.float32(0.05)), gamma, beta, 1e-5)
    expected = np.clip(real / float(np.float32(0.04)) - 3, -128, 127)
    ours = np.stack([lowered.interpret(one) for one in inputs]).reshape(expected.shape)
    assert np.abs(ours - expected).max() < 0.53, "half a step, and little else"


@pytest.mark.parametrize("layer_norm", LAYER_NORMS)
def test_rows_without_variance_and_nearly_without(model, lower, layer_norm):
    gamma, beta = parameters(8)
    x = model.quantized(model.input(1, 6, 8), 0.004, -5)
    y = layer_norm(model, x, gamma, beta, 1e-5)
    lowered = lower(model, model.quantized(y, 0.04))
    rows = np.zeros((6, 8), "int8")
    rows[1], rows[2] = 127, -128
    rows[3] = 100
    rows[3, 5] = 101  # its deviation is below sqrt(epsilon)
    rows[4] = [-128, 127] * 4
    rows[5, 0] = 127
    lowered.check(rows[None, None], equal=0.95)


def test_over_the_last_two_axes_and_without_a_bias(model, lower):
    x = model.quantized(model.input(1, 3, 4, 5), 0.05)
    gamma = model.constant(RANDOM.uniform(0.2, 2.0, (4, 5)))
    y = model.node("LayerNormalization", x, gamma, axis=2)
    lower(model, model.quantized(y, 0.05)).check(equal=0.98)


def test_of_a_sum_that_was_not_quantized(model, lower):
    """The residual of a transformer, straight into its LayerNorm."""
    x = model.quantized(model.input(1, 4, 16), 0.05, 3)
    w = model.weights(RANDOM.integers(-127, 128, (16, 16)), RANDOM.uniform(0.001, 0.01, 16), axis=1)
    b = model.constant(RANDOM.normal(size=16))
    y = model.node("Add", model.node("Add", model.node("MatMul", x, w), b), x)
    y = one_node(model, y, *parameters(16), 1e-5)
    lowered = lower(model, model.quantized(y, 0.04))
    lowered.check(equal=0.97)
    assert len(lowered.graph.layers) == 1


def test_normalization_of_instances(model, lower):
    x = model.quantized(model.input(1, 3, 4, 5), 0.05, 9)
    gamma, beta = (model.constant(array) for array in parameters(3))
    y = model.node("InstanceNormalization", x, gamma, beta)
    lower(model, model.quantized(y, 0.04)).check(equal=0.98)


def test_root_mean_square_normalization(model, lower):
    x = model.quantized(model.input(1, 5, 12), 0.05, 9)
    length = deviation(model, x, 1e-6)
    y = model.node("Mul", model.node("Div", x, length), model.constant(parameters(12)[0]))
    lower(model, model.quantized(y, 0.03)).check(equal=0.98)


def as_torch_normalizes(model, x):
    length = model.node("ReduceL2", x, axes=[-1], keepdims=1)
    length = model.node("Clip", length, model.constant(1e-12))
    whole = model.node("Expand", length, model.node("Shape", x))
    return model.node("Div", x, whole)


def by_its_norm(model, x):
    return model.node("Div", x, model.node("ReduceL2", x, axes=[-1], keepdims=1))


def settled(model, x):
    total = model.node("ReduceSum", model.node("Mul", x, x), model.constant([-1], "int64"))
    return model.node("Div", x, model.node("Sqrt", model.node("Add", total, model.constant(1e-12))))


@pytest.mark.parametrize("unit", [as_torch_normalizes, by_its_norm, settled])
def test_vectors_of_length_one(model, lower, unit):
    x = model.quantized(model.input(1, 7, 3), 0.05, 11)
    lowered = lower(model, model.quantized(unit(model, x), 1 / 127))
    lowered.check(equal=0.99)
    rows = np.full((1, 7, 3), 11, "int8")  # vectors of zeros among them
    rows[0, 1, 0], rows[0, 2], rows[0, 3] = 12, [-128, 11, 127], 127
    if unit is not by_its_norm:  # onnxruntime divides 0 by 0 there
        lowered.check(rows[None], equal=0.99)
    assert lowered.interpret(rows[:1])[0, 0].tolist() == [0, 0, 0]


def test_a_length_that_is_not_the_vectors_own(model, lower):
    """Another tensor's length is a quotient by a root."""
    x = model.quantized(model.input(1, 7, 3), 0.05, 11)
    y = model.quantized(model.node("Neg", x), 0.043)
    squared = model.node("Mul", y, y)
    total = model.node("ReduceSum", squared, model.constant([-1], "int64"))
    root = model.node("Sqrt", model.node("Add", total, model.constant(0.5)))
    lower(model, model.quantized(model.node("Div", x, root), 0.02)).check(equal=0.98)


def test_fields_far_smaller_than_they_might_be(model, lower):
    """Couplings of nearly 0: what is left is epsilon times the anchors, and it has a direction."""
    x = model.quantized(model.input(1, 6, 49), 0.02, -128)
    anchors = RANDOM.integers(-90, 91, (49, 2))
    field = model.node("MatMul", x, model.weights(anchors, 1 / 127))
    rest = model.constant(1e-3 * anchors.sum(axis=0) / 127)
    y = settled(model, model.node("Add", field, rest))
    lowered = lower(model, model.quantized(y, 1 / 127))
    rows = np.full((6, 49), -128, "int8")
    rows[1, 0], rows[2, :2], rows[3] = -127, -127, -127
    rows[4] = 127
    lowered.check(rows[None, None], equal=0.9)


@given(st.data())
@settings(max_examples=8, deadline=None)
def test_any_width_step_and_epsilon(new_model, road, data):
    width = data.draw(st.integers(2, 40))
    epsilon = data.draw(st.sampled_from([1e-12, 1e-5, 1e-3, 1.0]))
    model = new_model()
    scale = data.draw(st.floats(0.001, 2.0))
    x = model.quantized(model.input(1, 3, width), scale, data.draw(st.integers(-128, 127)))
    y = data.draw(st.sampled_from(LAYER_NORMS))(model, x, *parameters(width), epsilon)
    model.output(model.quantized(y, 0.05))
    with tempfile.TemporaryDirectory() as folder:
        path = model.save(Path(folder) / "small.onnx")
        road.from_file(path, Path(folder) / "lowered").check(equal=0.95)
