"""Softmax, tables, and what an oscillator computes in single precision."""

from __future__ import annotations

import numpy as np
import pytest

from entrain.deploy.errors import UnsupportedOperator

EVERY_INT8 = np.arange(-128, 128).astype("int8")


def sigmoid(model, x):
    return model.node("Sigmoid", x)


def tanh(model, x):
    return model.node("Tanh", x)


def softplus(model, x):
    return model.node("Softplus", x)


def exponential(model, x):
    return model.node("Exp", model.node("Neg", model.node("Abs", x)))


def logarithm(model, x):
    return model.node("Log", model.node("Add", model.node("Abs", x), model.constant(0.1)))


def gelu(model, x):
    erf = model.node("Erf", model.node("Div", x, model.constant(np.sqrt(2.0))))
    half = model.node("Mul", x, model.constant(0.5))
    return model.node("Mul", half, model.node("Add", erf, model.constant(1.0)))


def hard_swish(model, x):
    shifted = model.node("Add", x, model.constant(3.0))
    gate = model.node("Clip", shifted, model.constant(0.0), model.constant(6.0))
    return model.node("Mul", x, model.node("Div", gate, model.constant(6.0)))


FUNCTIONS = [sigmoid, tanh, softplus, exponential, logarithm, gelu, hard_swish]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_of_one_tensor_is_one_table(model, lower, function):
    x = model.quantized(model.input(1, 256), 0.03, 5)
    lowered = lower(model, model.quantized(function(model, x), 0.03, -9))
    lowered.check(EVERY_INT8.reshape(1, 1, 256), equal=0.98)
    assert lowered.graph.layers[0].title == "lookup"
    assert "float" not in lowered.source["model.c"]
    assert "table[256]" in lowered.source["weights.h"]


def test_a_table_of_an_unsigned_tensor_that_is_moved_about(model, lower):
    x = model.quantized(model.input(1, 16, 16), 0.02, 77, "uint8")
    x = model.node("Transpose", x, perm=[0, 2, 1])
    x = model.node("Softplus", model.node("Reshape", x, model.constant([1, 4, 64], "int64")))
    x = model.node("Transpose", x, perm=[0, 2, 1])
    lowered = lower(model, model.quantized(x, 0.02, 0, "uint8"))
    lowered.check(np.arange(256).astype("uint8").reshape(1, 1, 16, 16), equal=0.99)
    assert lowered.graph.layers[0].title == "lookup"


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1, 5, 7), -1), ((1, 2, 3, 4), 1), ((1, 6, 5), 1), ((1, 9), 1), ((7,), 0), ((1, 5, 1), 2)],
)
def test_softmax_over_rows_and_over_another_axis(model, lower, shape, axis):
    x = model.quantized(model.input(*shape), 0.09, 3)
    x = model.quantized(model.node("Neg", x), 0.08, 4)
    y = model.node("Softmax", x, axis=axis)
    lower(model, model.quantized(y, 1 / 255, 0, "uint8")).check()


def test_softmax_of_logits_spread_over_the_whole_range(model, lower):
    x = model.quantized(model.input(1, 2, 4), 0.02)
    x = model.quantized(model.node("Add", x, x), 0.04)
    y = model.node("Softmax", x, axis=-1)
    lowered = lower(model, model.quantized(y, 1 / 255, 0, "uint8"))
    extremes = np.array([[[[-128, 127, -128, 127], [-128, -128, -128, -128]]]], "int8")
    lowered.check(extremes)


def test_softmax_of_transposed_scores_then_moved(model, lower):
    x = model.quantized(model.input(1, 5, 4), 0.05, 3)
    y = model.node("Softmax", model.node("Transpose", x, perm=[0, 2, 1]), axis=-1)
    y = model.node("Transpose", y, perm=[0, 2, 1])
    lower(model, model.quantized(y, 1 / 255, 0, "uint8")).check()


def settled(model, field):
    squared = model.node("Mul", field, field)
    length = model.node("ReduceSum", squared, model.constant([-1], "int64"), keepdims=1)
    length = model.node("Add", length, model.constant(1e-12))
    return model.node("Div", field, model.node("Sqrt", length))


def test_settle_and_read_out_of_an_oscillator(model, lower):
    x = model.quantized(model.input(1, 2, 5, 3), 0.05)
    random = np.random.default_rng(5)
    anchors = model.weights(random.integers(-60, 61, (1, 2, 3, 2)), 1 / 127)
    state = model.quantized(settled(model, model.node("MatMul", x, anchors)), 1 / 127)
    moments = model.weights(random.integers(-127, 128, (1, 2, 2, 4)), 0.01)
    mean = model.weights(random.integers(-40, 41, (1, 2, 1, 2)), 1 / 127)
    alignment = model.node("Mul", state, mean)
    alignment = model.node("ReduceSum", alignment, model.constant([-1], "int64"), keepdims=1)
    total = model.node("Add", alignment, model.constant(1.0))
    context = model.node("Div", model.node("MatMul", state, moments), total)
    context = model.node("Transpose", context, perm=[0, 2, 1, 3])
    context = model.node("Reshape", context, model.constant([1, 5, 8], "int64"))
    lowered = lower(model, model.quantized(context, 0.02))
    inputs = lowered.random_inputs(8)
    inputs[0] = 0
    lowered.check(inputs)


def test_no_field_settles_at_zero(model, lower):
    x = model.quantized(model.input(1, 5, 2), 0.05)
    lowered = lower(model, model.quantized(settled(model, x), 1 / 127))
    inputs = np.zeros((1, 1, 5, 2), "int8")
    inputs[0, 0, 3] = [0, 9]
    lowered.check(inputs, equal=1.0)
    assert lowered.host.run(inputs[0])[0].tolist() == [[0, 0]] * 3 + [[0, 127], [0, 0]]


def test_a_division_by_zero_saturates_and_a_nan_gives_the_lowest_code(model, lower):
    x = model.quantized(model.input(1, 3), 1.0)
    y = model.quantized(model.node("Neg", x), 1.0)
    lowered = lower(model, model.quantized(model.node("Div", y, x), 0.1))
    lowered.check(np.array([[[0, 5, -128]]], "int8"))


def test_a_square_root_of_a_negative_is_the_same_everywhere(model, lower):
    x = model.quantized(model.input(1, 4), 1.0)
    y = model.quantized(model.node("Neg", x), 1.0)
    root = model.node("Sqrt", model.node("Add", x, y))
    z = model.node("Add", model.node("Relu", model.node("Sqrt", y)), model.node("Mul", x, root))
    lowered = lower(model, model.quantized(z, 0.1))
    lowered.check_c(lowered.random_inputs(8))


def test_a_function_of_two_tensors_that_needs_a_table_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.1)
    y = model.quantized(model.node("Neg", x), 0.1)
    z = model.node("Tanh", model.node("Add", x, y))
    with pytest.raises(UnsupportedOperator, match="one 8-bit tensor") as caught:
        lower(model, model.quantized(z, 0.01))
    assert z in str(caught.value)
    assert "quantize its operand" in str(caught.value.remedy)


def test_softmax_of_something_wide_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.1)
    y = model.node("Softmax", model.node("Mul", x, x), axis=-1)
    with pytest.raises(UnsupportedOperator, match="Softmax of a tensor that is not 8 bits wide"):
        lower(model, model.quantized(y, 0.01))
