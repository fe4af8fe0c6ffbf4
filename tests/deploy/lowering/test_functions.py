"""Functions of one tensor as tables, of several and of wide ones in integers."""

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


def silu(model, x):
    return model.node("Mul", x, model.node("Sigmoid", x))


def wide(model, bias=True):
    """A product that no quantizer has brought to 8 bits."""
    random = np.random.default_rng(4)
    x = model.quantized(model.input(1, 12, 16), 0.05, 3)
    w = model.weights(random.integers(-127, 128, (16, 8)), random.uniform(0.001, 0.01, 8), axis=1)
    y = model.node("MatMul", x, w)
    return model.node("Add", y, model.constant(random.normal(size=8))) if bias else y


def sine(model, x):
    return model.node("Sin", model.node("Mul", x, model.constant(0.2)))


def mish(model, x):
    return model.node("Mul", x, model.node("Tanh", model.node("Softplus", x)))


def leaky(model, x):
    return model.node("LeakyRelu", x, alpha=0.1)


def elu(model, x):
    return model.node("Elu", x)


WIDE = [sigmoid, tanh, softplus, exponential, gelu, hard_swish, silu, sine, mish, leaky, elu]


@pytest.mark.parametrize("function", WIDE)
def test_a_function_straight_behind_a_product(model, lower, function):
    """Lines between a few hundred values: within a step of onnxruntime, nearly always equal."""
    lowered = lower(model, model.quantized(function(model, wide(model)), 0.02, -9))
    lowered.check(equal=0.97)
    assert len(lowered.graph.layers) == 1


def test_a_function_of_two_tensors_of_different_steps(model, lower):
    x = model.quantized(model.input(1, 50), 0.1)
    y = model.quantized(model.node("Neg", x), 0.083)
    z = model.node("Tanh", model.node("Add", model.node("Mul", x, model.constant(0.3)), y))
    lower(model, model.quantized(z, 1 / 127)).check(equal=0.98)


def test_a_function_of_the_sum_of_two_tensors_of_one_step_is_a_table(model, lower):
    x = model.quantized(model.input(1, 50), 0.02, 4)
    y = model.quantized(model.node("Relu", x), 0.02, -7)
    lowered = lower(model, model.quantized(model.node("Sigmoid", model.node("Add", x, y)), 0.004))
    lowered.check(equal=0.98)
    assert "Lookup" in lowered.operators


def test_the_gate_of_another_tensor(model, lower):
    """sigmoid(a) b and sigmoid(a) tanh(b), neither quantized between."""
    x = model.quantized(model.input(1, 60), 0.04, 5)
    y = model.quantized(model.node("Neg", x), 0.03)
    gate = model.node("Sigmoid", x)
    gated = model.node("Mul", gate, y)
    both = model.node("Mul", gate, model.node("Tanh", y))
    z = model.quantized(model.node("Add", gated, both), 0.05)
    lower(model, z).check(equal=0.98)


def test_a_function_whose_operand_is_a_bias_a_channel(model, lower):
    x = model.quantized(model.input(1, 9, 4), 0.04, 5)
    z = model.node("Sigmoid", model.node("Add", x, model.constant([0.1, -1.0, 3.0, 0.0])))
    lower(model, model.quantized(z, 0.004, -128)).check(equal=0.98)


def test_functions_are_summed_before_they_are_quantized(model, lower):
    x = model.quantized(model.input(1, 9, 40), 0.04, 5)
    z = model.node("ReduceSum", model.node("Softplus", x), model.constant([-1], "int64"))
    lower(model, model.quantized(z, 0.9)).check(equal=0.95)


def test_a_constant_through_a_function_is_a_constant(model, lower):
    x = model.quantized(model.input(1, 9), 0.04, 5)
    shift = model.node("Softplus", model.constant(np.linspace(-2, 2, 9)))
    lower(model, model.quantized(model.node("Add", x, shift), 0.05)).check()


def test_a_function_too_steep_for_a_table_is_refused(model, lower):
    y = model.node("Sin", model.node("Mul", wide(model, bias=False), model.constant(900.0)))
    with pytest.raises(UnsupportedOperator, match="too steep") as caught:
        lower(model, model.quantized(y, 1 / 127))
    assert y in str(caught.value)
    assert "quantize its operand" in str(caught.value.remedy)


def test_a_function_that_may_grow_without_bound_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.1)
    y = model.quantized(model.node("Neg", x), 0.1)
    sigmoid_of_ratio = model.node("Sigmoid", model.node("Div", x, y))
    with pytest.raises(UnsupportedOperator, match="without bound") as caught:
        lower(model, model.quantized(sigmoid_of_ratio, 0.01))
    assert "clip it" in str(caught.value.remedy)
