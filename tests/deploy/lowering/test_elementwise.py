"""Arithmetic element by element, reductions and moves."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

RANDOM = np.random.default_rng(11)


def test_add_of_two_tensors_of_different_scales(model, lower):
    x = model.quantized(model.input(1, 3, 5), 0.05, 7)
    y = model.quantized(model.node("Relu", x), 0.013, 0, "uint8")
    lowered = lower(model, model.quantized(model.node("Add", x, y), 0.06, -11))
    lowered.check()
    assert "Quantize" not in lowered.operators, "an addition needs no floating point"


def test_a_residual_joins_the_requantization_of_a_product(model, lower):
    x = model.quantized(model.input(1, 3, 6), 0.05)
    w = model.weights(RANDOM.integers(-127, 128, (6, 6)), 0.01)
    y = model.node("Add", model.node("MatMul", x, w), x)
    lowered = lower(model, model.quantized(y, 0.1))
    lowered.check()
    assert len(lowered.graph.layers) == 1


def test_subtraction_and_negation(model, lower):
    x = model.quantized(model.input(1, 8), 0.05, 3)
    y = model.quantized(model.node("Neg", x), 0.03)
    lower(model, model.quantized(model.node("Sub", y, x), 0.09)).check()


@pytest.mark.parametrize("factor", [0.37, -1.5, [0.2, -0.4, 3.0, 0.01]])
def test_multiplication_by_a_constant(model, lower, factor):
    x = model.quantized(model.input(1, 3, 4), 0.05, 3)
    y = model.node("Mul", x, model.constant(factor))
    lowered = lower(model, model.quantized(y, 0.08))
    lowered.check()
    assert "Quantize" not in lowered.operators


def test_multiplication_by_zero_leaves_the_bias(model, lower):
    x = model.quantized(model.input(1, 4), 0.05)
    y = model.quantized(model.node("Neg", x), 0.05)
    nothing = model.node("Mul", y, model.constant([0.0, 1.0, 0.0, 0.0]))
    z = model.node("Add", nothing, model.constant([3.0, 0.0, -2.0, 1.0]))
    lowered = lower(model, model.quantized(z, 0.05))
    lowered.check()
    assert lowered.host.run(np.array([9, 9, 9, 9], "int8")).tolist() == [[60, -9, -40, 20]]


def test_product_of_two_tensors(model, lower):
    x = model.quantized(model.input(1, 3, 4), 0.05, 3)
    y = model.quantized(model.node("Neg", x), 0.03)
    lower(model, model.quantized(model.node("Mul", x, y), 0.3)).check()


def test_division_by_a_constant_and_of_a_constant(model, lower):
    x = model.quantized(model.input(1, 8), 0.05, -128)
    y = model.node("Add", model.node("Div", x, model.constant(3.0)), model.constant(1.0))
    y = model.quantized(y, 0.02, 0, "uint8")
    inverse = model.node("Reciprocal", model.node("Add", y, model.constant(0.5)))
    lower(model, model.quantized(inverse, 0.003, 0, "uint8")).check()


def test_square_and_cube(model, lower):
    x = model.quantized(model.input(1, 3, 4), 0.05, 3)
    y = model.quantized(model.node("Pow", x, model.constant(2.0)), 0.2, 0, "uint8")
    cube = model.node("Add", model.node("Pow", y, model.constant(3)), x)
    lower(model, model.quantized(cube, 400.0)).check()


def test_relu_into_unsigned_and_into_a_zero_point(model, lower):
    x = model.quantized(model.input(1, 8), 0.05, 3)
    y = model.quantized(model.node("Relu", x), 0.025, 0, "uint8")
    z = model.node("Sub", y, model.constant(2.0))
    lower(model, model.quantized(model.node("Relu", z), 0.02, -100)).check()


@pytest.mark.parametrize("bounds", [(0.0, 6.0), (-1.0, None), (None, 2.5), (-np.inf, 1.0)])
def test_clip_is_a_bound_of_the_requantization(model, lower, bounds):
    x = model.quantized(model.input(1, 8), 0.1, 3)
    names = ["" if bound is None else model.constant(bound) for bound in bounds]
    lowered = lower(model, model.quantized(model.node("Clip", x, *names), 0.05))
    lowered.check()
    assert "Quantize" not in lowered.operators


def test_clip_then_scale_scales_the_bounds(model, lower):
    x = model.quantized(model.input(1, 3), 0.1)
    clipped = model.node("Clip", x, model.constant(-1.0), model.constant(2.0))
    for factor, expected in (([0.5], [-10, 20, 0]), ([0.5, 1.0, 2.0], [-10, 40, 0])):
        scaled = model.node("Mul", clipped, model.constant(factor))
        fork = type(model)(list(model.nodes), list(model.constants), model.inputs)
        lowered = lower(fork, fork.quantized(scaled, 0.05))
        lowered.check()
        assert lowered.host.run(np.array([-127, 127, 0], "int8")).tolist() == [expected]
        model.nodes.pop()


def test_clip_behind_a_quantizer_narrows_its_range(model, lower):
    x = model.quantized(model.input(1, 4), 0.1)
    q = model.quantize(model.node("Neg", x), 0.05)
    low, high = model.constant(-7, "int8"), model.constant(7, "int8")
    narrow = model.node("Clip", q, low, high, name="narrow")
    y = model.node(
        "DequantizeLinear", narrow, model.constant(0.05), model.constant(0, "int8"), name="y"
    )
    lowered = lower(model, model.quantized(model.node("Add", y, y), 0.01))
    lowered.check()
    traced = lowered.host.trace(np.array([-100, -3, 2, 100], "int8"))
    assert traced[lowered.graph.layers[0].name].tolist() == [[7, 6, -4, -7]]
    assert lowered.graph.layers[0].output.onnx_output == "narrow"


def test_several_consumers_of_one_tensor(model, lower):
    x = model.quantized(model.input(1, 4, 4), 0.05)
    w = model.weights(RANDOM.integers(-127, 128, (4, 4)), 0.01)
    shared = model.node("MatMul", x, w)
    narrow, wide = model.quantized(shared, 0.02), model.quantized(shared, 0.2, 9, "uint8")
    y = model.node("Add", model.node("Add", narrow, wide), x)
    lower(model, model.quantized(y, 0.2)).check()


@pytest.mark.parametrize(
    ("axes", "keep"), [([1], 0), ([-1], 1), ([1, 2], 1), ([0, 1, 2], 0), ([2, 1], 0)]
)
def test_sum_and_mean(model, lower, axes, keep):
    x = model.quantized(model.input(1, 5, 6), 0.05, 9)
    total = model.node("ReduceSum", x, model.constant(axes, "int64"), keepdims=keep)
    mean = model.node("ReduceMean", x, axes=axes, keepdims=keep)
    a, b = model.quantized(total, 0.5), model.quantized(mean, 0.03)
    lowered = lower(model, model.quantized(model.node("Add", a, b), 0.5))
    lowered.check()
    assert "Quantize" not in lowered.operators


def test_a_sum_of_reals_runs_in_one_order_everywhere(model, lower):
    x = model.quantized(model.input(1, 4, 7, 9), 0.05)
    squares = model.node("Mul", x, x)
    total = model.node("ReduceSum", squares, model.constant([1, 3], "int64"), keepdims=0)
    mean = model.node("ReduceMean", squares, axes=[-1], keepdims=1)
    y = model.node("ReduceSum", model.quantized(mean, 0.1, 0, "uint8"), keepdims=0)
    a = model.quantized(total, 3.0, 0, "uint8")
    lower(model, model.quantized(model.node("Add", a, y), 10.0)).check()


def test_a_sum_over_channels_of_different_scales(model, lower):
    x = model.quantized(model.input(1, 5, 4), 0.05)
    scaled = model.node("Mul", x, model.constant([0.1, 0.5, 1.0, -2.0]))
    total = model.node("ReduceSum", scaled, model.constant([2], "int64"), keepdims=0)
    lower(model, model.quantized(total, 0.2)).check()


def test_sum_over_an_axis_of_extent_one(model, lower):
    x = model.quantized(model.input(1, 5, 1), 0.05)
    total = model.node("ReduceSum", x, model.constant([2], "int64"), keepdims=0)
    lower(model, model.quantized(total, 0.03)).check()


def test_reshape_transpose_squeeze_unsqueeze_flatten_expand(model, lower):
    x = model.quantized(model.input(1, 6, 4), 0.05, 3)
    x = model.node("Reshape", x, model.constant([2, 3, 4, 1], "int64"))
    x = model.node("Transpose", x, perm=[2, 0, 1, 3])
    x = model.node("Squeeze", x, model.constant([3], "int64"))
    x = model.quantized(model.node("Neg", x), 0.041)
    x = model.node("Unsqueeze", x, model.constant([0, 2], "int64"))
    x = model.node("Expand", x, model.constant([1, 4, 3, 2, 3], "int64"))
    x = model.node("Transpose", model.node("Flatten", x, axis=3))
    lower(model, model.quantized(x, 0.041)).check(equal=1.0)


def test_moves_of_a_channel_scaled_tensor_move_the_scales_too(model, lower):
    x = model.quantized(model.input(1, 3, 4), 0.05, 3)
    x = model.node("Mul", x, model.constant([[0.1], [0.5], [2.0]]))
    x = model.node("Add", x, model.constant([1.0, 2.0, 3.0, 4.0]))
    x = model.node(
        "Reshape", model.node("Transpose", x, perm=[0, 2, 1]), model.constant([1, 12], "int64")
    )
    lowered = lower(model, model.quantized(x, 0.1))
    lowered.check()
    assert "Quantize" not in lowered.operators


def test_a_single_element_tensor_as_scale_and_zero_point(model, lower):
    def quantized(tensor, scale):
        q = model.node(
            "QuantizeLinear", tensor, model.constant([scale]), model.constant([3], "int8")
        )
        return model.node(
            "DequantizeLinear", q, model.constant([scale]), model.constant([3], "int8")
        )

    x = quantized(model.input(1, 4), 0.05)
    lower(model, quantized(model.node("Neg", x), 0.073)).check()


def test_a_missing_zero_point_means_unsigned_zero(model, lower):
    x = model.node("QuantizeLinear", model.input(1, 4), model.constant(0.05))
    x = model.node("DequantizeLinear", x, model.constant(0.05))
    y = model.node("QuantizeLinear", model.node("Add", x, x), model.constant(0.1))
    lowered = lower(model, model.node("DequantizeLinear", y, model.constant(0.1)))
    assert lowered.graph.input.dtype == lowered.graph.output.dtype == "uint8"
    lowered.check()


def test_a_symbolic_batch_becomes_one(model, lower):
    x = model.quantized(model.input("batch", 4), 0.05)
    w = model.weights(RANDOM.integers(-127, 128, (4, 4)), 0.01)
    lowered = lower(model, model.quantized(model.node("MatMul", x, w), 0.02))
    assert lowered.graph.output.shape == (1, 4)
    lowered.check()


def test_a_quantized_constant_is_no_layer(model, lower):
    x = model.quantized(model.input(1, 4), 0.05)
    positions = model.node(
        "Reshape", model.constant([1.0, -1.0, 0.5, 0.26]), model.constant([1, 4], "int64")
    )
    y = model.node("Add", x, model.quantized(positions, 0.25))
    lowered = lower(model, model.quantized(y, 0.05))
    assert len(lowered.graph.layers) == 1
    lowered.check()
    assert lowered.host.run(np.zeros(4, "int8")).tolist() == [[20, -20, 10, 5]]


def test_unused_initializers_and_nodes_are_left_out(model, lower):
    x = model.quantized(model.input(1, 4), 0.05)
    model.constants.append(numpy_helper.from_array(np.zeros(1000, "float32"), "unused"))
    model.quantized(model.node("Neg", x), 0.05)
    lowered = lower(model, model.quantized(model.node("Add", x, x), 0.1))
    assert len(lowered.graph.layers) == 1
    assert len(lowered.source["weights.c"]) < 1000
    lowered.check()


def test_an_input_quantized_twice_alike_is_one_input(model, lower):
    features = model.input(1, 4)
    y = model.node("Add", model.quantized(features, 0.05), model.quantized(features, 0.05))
    lower(model, model.quantized(y, 0.1)).check()


def test_the_output_may_stay_quantized(model, lower):
    x = model.quantized(model.input(1, 4), 0.05)
    model.output(model.quantize(model.node("Neg", x), 0.06), TensorProto.INT8)
    lower(model).check()
