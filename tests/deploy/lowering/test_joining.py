"""Concat, Split and Pad: tensors put together, cut up and surrounded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from rewritten import check_unchanged, operators

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.join import Join, Pad

RANDOM = np.random.default_rng(13)


def split(model, tensor, axis, sizes=None, count=None, **attributes):
    """The names of a Split's outputs."""
    count = len(sizes) if sizes else count
    outputs = [f"part_{len(model.nodes)}_{k}" for k in range(count)]
    inputs = [tensor, model.constant(sizes, "int64")] if sizes else [tensor]
    model.nodes.append(
        helper.make_node("Split", inputs, outputs, name="node_split", axis=axis, **attributes)
    )
    return outputs


def three(model):
    """Three tensors of [1, 4, 3] with different steps, zero points and types."""
    a = model.quantized(model.input(1, 4, 3), 0.05, 3)
    b = model.quantized(model.node("Neg", a), 0.0431, -4)
    c = model.quantized(model.node("Relu", a), 0.03, 10, "uint8")
    return a, b, c


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_tensors_with_different_steps_zero_points_and_types(model, lower, axis):
    joined = model.node("Concat", *three(model), axis=axis)
    lowered = lower(model, model.quantized(joined, 0.0531, 5))
    lowered.check()
    assert len(lowered.graph.layers) == 3, "the parts are requantized as they are joined"


def test_tensors_with_the_same_quantization_are_joined_as_bytes(model, lower):
    a = model.quantized(model.input(1, 4, 3), 0.05, 3)
    b = model.quantized(model.node("Neg", a), 0.05, 3)
    joined = model.node("Concat", a, b, a, axis=1)
    lowered = lower(model, model.quantized(joined, 0.05, 3))
    lowered.check(equal=1.0)
    (join,) = (
        node
        for node in lowered.graph.layers[-1].expression.walk()
        if isinstance(node.operator, Join)
    )
    assert join.dtype == "int8"


def test_a_joined_tensor_is_multiplied_without_a_quantization_in_between(model, lower):
    a = model.quantized(model.input(1, 4, 3), 0.05, 3)
    b = model.quantized(model.node("Neg", a), 0.05, 3)
    w = model.weights(RANDOM.integers(-127, 128, (6, 5)), 0.01)
    product = model.node("MatMul", model.node("Concat", a, b, axis=-1), w)
    lower(model, model.quantized(product, 0.1)).check()


def test_a_product_over_parts_with_different_steps_is_refused(model, lower):
    a, b, _ = three(model)
    w = model.weights(RANDOM.integers(-127, 128, (6, 5)), 0.01)
    product = model.node("MatMul", model.node("Concat", a, b, axis=-1), w)
    with pytest.raises(UnsupportedOperator, match="scale for each element of the summed axis"):
        lower(model, model.quantized(product, 0.1))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (0, 2, 1)])
def test_constants_between_tensors(model, lower, order):
    """A class token, zeros, and something in full precision."""
    x = model.quantized(model.input(1, 4, 3), 0.05, 3)
    token = model.weights(RANDOM.integers(-127, 128, (1, 1, 3)), 0.01)
    parts = [x, token, model.constant(RANDOM.normal(size=(1, 2, 3)))]
    joined = model.node("Concat", *(parts[k] for k in order), axis=1)
    lower(model, model.quantized(joined, 0.0531)).check()


def test_a_sum_joined_with_a_tensor(model, lower):
    """As many terms as the longer part has; zeros stand in for those of the other."""
    a, b, c = three(model)
    total = model.node("Add", a, b)
    joined = model.node("Concat", c, total, axis=1)
    first = model.quantized(joined, 0.0531)
    second = model.quantized(model.node("Neg", joined), 0.0631)
    lowered = lower(model, model.quantized(model.node("Sub", first, second), 0.11))
    lowered.check()


def test_what_is_not_quantized_is_quantized_before_it_is_joined(model, lower, tmp_path):
    x = model.quantized(model.input(1, 4, 3), 0.05, 3)
    w = model.weights(RANDOM.integers(-127, 128, (3, 5)), 0.01)
    parts = [model.node("Relu", model.node("MatMul", x, w)), x, model.node("Sigmoid", x)]
    joined = model.node("Concat", *parts, axis=-1)
    lowered = lower(model, model.quantized(joined, 0.0531))
    lowered.check()
    check_unchanged(tmp_path / "small.onnx")
    assert len(lowered.graph.layers) == 3


def test_parts_clipped_in_two_ways_are_refused(model, lower):
    a, b, _ = three(model)
    joined = model.node("Concat", model.node("Relu", a), b, axis=1)
    first, second = model.quantized(joined, 0.1), model.quantized(joined, 0.2)
    with pytest.raises(UnsupportedOperator, match="some were clipped") as caught:
        lower(model, model.quantized(model.node("Add", first, second), 0.1, name="sum"))
    assert "before the Concat" in caught.value.remedy


@pytest.mark.parametrize(
    ("axis", "sizes", "count"),
    [(1, [2, 3, 1], None), (1, None, 2), (-1, None, 4), (2, [4], None), (1, [1, 5], None)],
)
def test_a_split_cuts_a_tensor(model, lower, tmp_path, axis, sizes, count):
    x = model.quantized(model.input(1, 6, 4), 0.05, 3)
    parts = split(model, x, axis, sizes, count)
    scaled = [
        model.node("Mul", part, model.constant(factor))
        for part, factor in zip(parts, RANDOM.uniform(0.3, 0.9, len(parts)), strict=True)
    ]
    lower(model, model.quantized(model.node("Concat", *scaled, axis=axis), 0.0531)).check()
    check_unchanged(tmp_path / "small.onnx")


def test_a_split_into_a_number_of_parts_of_which_the_last_is_smaller(model, lower, tmp_path):
    x = model.quantized(model.input(1, 7, 4), 0.05, 3)
    parts = split(model, x, 1, count=3, num_outputs=3)
    joined = model.node("Concat", *reversed(parts), axis=1)
    lower(model, model.quantized(joined, 0.0531), opset=18).check()
    check_unchanged(tmp_path / "small.onnx")


PADS = {
    "behind": [0, 0, 0, 0, 0, 2],
    "on all sides": [0, 1, 2, 0, 3, 1],
    "and cut off": [0, -1, 2, 0, 1, -2],
    "only cut off": [0, -1, 0, 0, -1, -2],
    "by nothing": [0, 0, 0, 0, 0, 0],
}


@pytest.mark.parametrize("value", [None, 0.0, 0.77])
@pytest.mark.parametrize("case", PADS)
def test_a_tensor_padded_with_a_constant(model, lower, tmp_path, case, value):
    x = model.quantized(model.input(1, 4, 5), 0.05, 30, "uint8")
    inputs = [x, model.constant(PADS[case], "int64")]
    inputs += [] if value is None else [model.constant(value)]
    lower(model, model.quantized(model.node("Pad", *inputs), 0.0531, 3)).check()
    check_unchanged(tmp_path / "small.onnx")


@pytest.mark.parametrize("mode", ["edge", "reflect"])
@pytest.mark.parametrize("sides", [[0, 1, 2, 0, 2, 1], [0, 0, 3, 0, 0, 4]])
def test_a_tensor_padded_with_what_lies_near_its_edges(model, lower, tmp_path, mode, sides):
    x = model.quantized(model.input(1, 4, 5), 0.05, 3)
    y = model.node("Pad", x, model.constant(sides, "int64"), mode=mode)
    lower(model, model.quantized(y, 0.0531)).check()
    check_unchanged(tmp_path / "small.onnx")


def test_a_tensor_padded_by_going_round(model, lower, tmp_path):
    x = model.quantized(model.input(1, 4, 5), 0.05, 3)
    y = model.node("Pad", x, model.constant([0, 1, 2, 0, 0, 1], "int64"), mode="wrap")
    lower(model, model.quantized(y, 0.0531), opset=19).check()
    check_unchanged(tmp_path / "small.onnx")


def test_a_pad_along_named_axes(model, lower, tmp_path):
    x = model.quantized(model.input(1, 4, 5), 0.05, 3)
    sides, axes = model.constant([1, 2], "int64"), model.constant([-1], "int64")
    y = model.node("Pad", x, sides, "", axes)
    lower(model, model.quantized(y, 0.0531), opset=18).check()
    check_unchanged(tmp_path / "small.onnx")


def test_zeros_around_keep_the_bytes_and_use_no_flash(model, lower):
    x = model.quantized(model.input(1, 4, 5), 0.05, 3)
    y = model.node("Pad", x, model.constant([0, 1, 2, 0, 0, 1], "int64"))
    lowered = lower(model, model.quantized(y, 0.05, 3))
    lowered.check(equal=1.0)
    (pad,) = (
        node for node in lowered.graph.layers[0].expression.walk() if isinstance(node.operator, Pad)
    )
    assert (pad.operator.fill, pad.dtype) == (3, "int8")
    assert lowered.source["weights.h"].count("extern") == 0


@pytest.mark.parametrize("image", [(6,), (6, 5)])
def test_zeros_before_a_convolution_become_its_padding(model, lower, image):
    x = model.quantized(model.input(1, 2, *image), 0.05, 100, "uint8")
    sides = [0, 0, *[1] * len(image), 0, 0, *[2] * len(image)]
    padded = model.node("Pad", x, model.constant(sides, "int64"))
    w = model.weights(RANDOM.integers(-127, 128, (3, 2, *[3] * len(image))), 0.01)
    y = model.node("Conv", padded, w, pads=[1, *[0] * (2 * len(image) - 1)])
    lowered = lower(model, model.quantized(y, 0.1))
    lowered.check()
    assert "Pad" not in lowered.operators
    (convolution,) = (
        node.operator
        for node in lowered.graph.layers[0].expression.walk()
        if isinstance(node.operator, Convolution)
    )
    assert convolution.padding == ((0, 2, 0, 2) if len(image) == 1 else (2, 1, 2, 2))


def test_sides_that_are_computed_are_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.1)
    model.inputs.append(helper.make_tensor_value_info("sides", 7, [4]))
    with pytest.raises(UnsupportedOperator, match=r"node_pad_.* pads something") as caught:
        lower(model, model.quantized(model.node("Pad", x, "sides"), 0.1))
    assert "small.onnx" in caught.value.where


def test_a_part_that_is_all_constant(model, lower):
    """The layer reads nothing of the tensor that was joined with the constant."""
    x = model.quantized(model.input(1, 4), 0.05)
    joined = model.node("Concat", model.constant(RANDOM.normal(size=(1, 3))), x, axis=1)
    first, _ = split(model, joined, 1, [3, 4])
    y = model.quantized(first, 0.0131)
    lower(model, model.quantized(model.node("Add", y, model.node("ReduceMax", x)), 0.05)).check()


def test_what_is_left_for_relax(model, tmp_path):
    x = model.quantized(model.input(1, 4, 6), 0.1)
    first, second = split(model, x, 1, count=2)
    y = model.node("Pad", model.node("Sum", first, second), model.constant([0, 1] * 3, "int64"))
    model.output(model.quantized(y, 0.1))
    left = set(operators(model.save(tmp_path / "small.onnx")))
    assert not left & {"Pad", "Split", "Sum"}


shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@given(shapes, st.data())
@settings(max_examples=40, deadline=None)
def test_joining_is_numpys(shape, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    dtypes = data.draw(st.lists(st.sampled_from(["int8", "uint8"]), min_size=1, max_size=3))
    arrays = []
    for dtype in dtypes:
        extents = list(shape)
        extents[axis] = data.draw(st.integers(1, 3))
        limits = np.iinfo(dtype)
        arrays.append(RANDOM.integers(limits.min, limits.max, extents, dtype, endpoint=True))
    node = apply(Join(axis), *map(constant, arrays))
    expected = np.concatenate([array.astype(int) for array in arrays], axis)
    np.testing.assert_array_equal(node.operator.reference(), expected)
    assert node.dtype == (dtypes[0] if len(set(dtypes)) == 1 else "int32")


@given(shapes, st.integers(-128, 127), st.data())
@settings(max_examples=40, deadline=None)
def test_padding_is_numpys(shape, fill, data):
    before, after = (tuple(data.draw(st.integers(0, 2)) for _ in shape) for _ in range(2))
    array = RANDOM.integers(-128, 128, shape).astype(np.int8)
    node = apply(Pad(before, after, fill), constant(array))
    expected = np.pad(array, list(zip(before, after, strict=True)), constant_values=fill)
    np.testing.assert_array_equal(node.operator.reference(), expected)
