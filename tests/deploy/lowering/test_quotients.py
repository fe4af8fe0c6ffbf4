"""Quotients, roots, powers and products of tensors, in integers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrain.deploy.errors import UnsupportedOperator

RANDOM = np.random.default_rng(17)


def two(model, *shape, first=(0.05, 3), second=(0.03, 0)):
    """Two tensors of different steps."""
    x = model.quantized(model.input(1, *shape), *first)
    return x, model.quantized(model.node("Neg", x), *second)


def test_a_division_by_zero_saturates_and_nothing_over_nothing_is_nothing(model, lower):
    x = model.quantized(model.input(1, 3), 1.0)
    y = model.quantized(model.node("Relu", x), 1.0)
    lowered = lower(model, model.quantized(model.node("Div", x, y), 0.1, 7))
    lowered.check(np.array([[[-3, 5, -128]]], "int8"), equal=1.0)
    assert lowered.host.run(np.array([[0, 127, -1]], "int8")).tolist() == [[7, 17, -128]]


def test_a_quotient_of_tensors_of_either_sign(model, lower):
    x, y = two(model, 200)
    y = model.node("Add", y, model.node("Relu", x))  # many near zero, and of both signs
    lowered = lower(model, model.quantized(model.node("Div", x, y), 0.05))
    inputs = lowered.random_inputs(8)
    worst, equal = lowered.difference_from_onnxruntime(inputs[inputs != 3].reshape(1, -1)[:, :200])
    assert worst <= 1
    assert equal >= 0.97
    lowered.check_c(inputs)


def test_a_share_with_a_constant_in_its_denominator(model, lower):
    x = model.quantized(model.input(1, 5, 6), 0.05, -128)
    total = model.node("ReduceSum", x, model.constant([-1], "int64"))
    y = model.node("Div", x, model.node("Add", total, model.constant(0.01)))
    lowered = lower(model, model.quantized(y, 1 / 255, 0, "uint8"))
    inputs = lowered.random_inputs(8)
    inputs[0, 0, 2] = -128  # nothing at all: shares of 0
    inputs[0, 0, 3, 1:] = -128
    lowered.check(inputs, equal=0.98)


@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_normalized_powers(model, lower, exponent):
    """(1 + z.r)^p as shares: the read-out of an oscillator."""
    x = model.quantized(model.input(1, 10, 2), 1 / 127)
    anchors = model.weights(RANDOM.integers(-89, 90, (2, 30)), 1 / 127)
    closeness = model.node("Add", model.node("MatMul", x, anchors), model.constant(1.0))
    power = model.node("Pow", closeness, model.constant(float(exponent)))
    y = model.node("Div", power, model.node("ReduceSum", power, model.constant([-1], "int64")))
    lowered = lower(model, model.quantized(y, 0.0006, 0, "uint8"))
    angles = RANDOM.uniform(0, 2 * np.pi, (8, 1, 10))
    states = np.rint(126 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)).astype("int8")
    lowered.check(states, equal=0.97)


@pytest.mark.parametrize("exponent", [0.5, -0.5, -1.0, 1.5, 4.0, -2.0])
def test_powers_of_one_tensor_are_tables(model, lower, exponent):
    x = model.quantized(model.input(1, 256), 0.03, -128)
    y = model.node("Pow", model.node("Add", x, model.constant(0.1)), model.constant(exponent))
    lowered = lower(model, model.quantized(y, 0.05, -60))
    lowered.check(np.arange(-128, 128).astype("int8").reshape(1, 1, 256), equal=0.98)
    assert lowered.graph.layers[0].title == "lookup"


@pytest.mark.parametrize("exponent", [0.5, -0.5, -1.0, 1.5, 2.0, 3.0])
def test_powers_of_a_sum_that_was_not_quantized(model, lower, exponent):
    x = model.quantized(model.input(1, 12, 16), 0.01, -128)
    w = model.weights(RANDOM.integers(1, 128, (16, 8)), RANDOM.uniform(0.001, 0.004, 8), axis=1)
    base = model.node("Add", model.node("MatMul", x, w), model.constant(0.3))
    y = model.node("Pow", base, model.constant(exponent))
    scale = {0.5: 0.02, -0.5: 0.008, -1.0: 0.015, 1.5: 0.3, 2.0: 0.7, 3.0: 6.0}[exponent]
    lower(model, model.quantized(y, scale)).check(equal=0.96)


def test_a_root_of_what_may_be_negative_is_zero_there(model, lower):
    x, y = two(model, 40)
    total = model.node("Add", x, model.node("Mul", y, y))
    lowered = lower(model, model.quantized(model.node("Sqrt", total), 0.03))
    inputs = lowered.random_inputs(4)
    inputs[inputs < 3] = 100  # where onnxruntime has no answer either
    lowered.check(inputs, equal=0.97)
    assert lowered.host.run(np.full(40, 2, "int8")).tolist() == [[0] * 40]


def test_an_odd_root_of_what_may_be_negative_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.1)
    y = model.quantized(model.node("Pow", x, model.constant(0.3)), 0.1)
    with pytest.raises(UnsupportedOperator, match=r"power 0\.3 of what may be") as caught:
        lower(model, y)
    assert "clip the base" in caught.value.remedy


def test_a_product_of_two_unquantized_sums(model, lower):
    """Both too wide for one int32 product, so both are rounded first."""
    x = model.quantized(model.input(1, 6, 32), 0.05, 3)
    y, z = (
        model.node("MatMul", x, model.weights(RANDOM.integers(-127, 128, (32, 8)), 0.003))
        for _ in range(2)
    )
    lower(model, model.quantized(model.node("Mul", y, z), 1.0)).check(equal=0.97)


def test_a_product_of_two_tensors_then_a_sum_over_heads(model, lower):
    x, y = two(model, 3, 40)
    total = model.node("ReduceSum", model.node("Mul", x, y), model.constant([1], "int64"))
    lower(model, model.quantized(total, 0.4)).check()


def test_a_clipped_summand_is_clipped_before_it_is_added(model, lower):
    x, y = two(model, 60)
    bounded = model.node("Clip", x, model.constant(-1.0), model.constant(2.0))
    total = model.node("Sub", model.node("Add", bounded, y), model.node("Relu", x))
    lower(model, model.quantized(total, 0.05)).check(equal=0.98)


@pytest.mark.parametrize("operator", ["Max", "Min"])
def test_the_larger_and_the_smaller_of_several_tensors(model, lower, operator):
    x, y = two(model, 5, 12)
    shift = model.constant(RANDOM.normal(size=(5, 12)))
    extreme = model.node(operator, x, y, shift)
    lower(model, model.quantized(extreme, 0.05, 2)).check(equal=0.97)


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize(("axes", "keep"), [([-1], 1), ([1], 0), ([1, 2], 0)])
def test_the_largest_and_the_smallest_along_axes(model, lower, operator, axes, keep):
    x = model.quantized(model.input(1, 5, 12), 0.05, 9)
    shifted = model.node("Mul", x, model.constant(-0.7))
    y = model.node(operator, shifted, axes=axes, keepdims=keep)
    lower(model, model.quantized(y, 0.0431)).check(equal=0.97)


@pytest.mark.parametrize("slope", [[0.25], [0.1, 0.2, 0.0, -0.5]])
def test_a_slope_for_each_channel_below_zero(model, lower, slope):
    x = model.quantized(model.input(1, 9, 4), 0.05, 9)
    y = model.node("PRelu", x, model.constant(slope))
    lower(model, model.quantized(y, 0.043)).check(equal=0.98)


def test_the_absolute_value_of_a_sum(model, lower):
    x, y = two(model, 60)
    z = model.node("Abs", model.node("Add", x, model.node("Mul", y, model.constant(2.0))))
    lower(model, model.quantized(z, 0.05)).check(equal=0.97)


def test_composites_may_be_moved_joined_and_chosen_from(model, lower):
    x, y = two(model, 4, 6)
    ratio = model.node("Div", x, model.node("Add", model.node("Abs", y), model.constant(0.5)))
    joined = model.node("Concat", model.node("Mul", x, y), ratio, axis=2)
    moved = model.node("Transpose", joined, perm=[0, 2, 1])
    cut = model.node("Gather", moved, model.constant([1, 7, 9], "int64"), axis=1)
    lower(model, model.quantized(cut, 0.08)).check(equal=0.96)


def test_the_pool_of_a_product(model, lower):
    x, y = two(model, 2, 6, 6)
    pooled = model.node("AveragePool", model.node("Mul", x, y), kernel_shape=[2, 2], strides=[2, 2])
    lower(model, model.quantized(pooled, 0.2)).check(equal=0.97)


@given(st.data())
@settings(max_examples=8, deadline=None)
def test_any_quotient(new_model, road, data):
    """Against double precision, half a step and a hundredth for the factors' 15 bits."""
    model = new_model()
    steps = [data.draw(st.floats(0.01, 0.2)) for _ in range(3)]
    x = model.quantized(model.input(1, 64), steps[0], data.draw(st.integers(-20, 20)))
    y = model.quantized(model.node("Abs", x), steps[1], -128)
    floor = data.draw(st.floats(0.05, 3.0))
    ratio = model.node("Div", x, model.node("Add", y, model.constant(floor)))
    model.output(model.quantized(ratio, steps[2] / 8))
    with tempfile.TemporaryDirectory() as folder:
        path = model.save(Path(folder) / "small.onnx")
        road.from_file(path, Path(folder) / "lowered").check(equal=0.9)
