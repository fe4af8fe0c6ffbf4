"""Pools: largest and average elements of windows, over one axis and two."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rewritten import check_unchanged, operators

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.pool import PoolMax, PoolSum, Window

RANDOM = np.random.default_rng(11)

WINDOWS = {
    "plain": {"kernel_shape": [2, 2]},
    "strided": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "padded on all sides": {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
    "overlapping": {"kernel_shape": [3, 3], "strides": [1, 2]},
    "over the whole image": {"kernel_shape": [7, 5]},
    "one by one": {"kernel_shape": [1, 1], "strides": [3, 2]},
    "padded as TensorFlow does": {
        "kernel_shape": [3, 2],
        "strides": [2, 2],
        "auto_pad": "SAME_UPPER",
    },
    "padded below": {"kernel_shape": [2, 3], "auto_pad": "SAME_LOWER"},
    "not padded": {"kernel_shape": [2, 3], "auto_pad": "VALID"},
    "with a last window over the edge": {
        "kernel_shape": [2, 2],
        "strides": [2, 2],
        "ceil_mode": 1,
    },
    "over the edge and padded": {
        "kernel_shape": [3, 3],
        "strides": [2, 2],
        "pads": [1, 1, 1, 1],
        "ceil_mode": 1,
    },
    "with a window that would begin behind the image": {
        "kernel_shape": [1, 1],
        "strides": [2, 3],
        "pads": [0, 0, 0, 0],
        "ceil_mode": 1,
    },
}


@pytest.mark.parametrize("case", WINDOWS)
def test_max_pool(model, lower, tmp_path, case):
    x = model.quantized(model.input(1, 3, 7, 5), 0.05, 7)
    y = model.node("MaxPool", x, **WINDOWS[case])
    lowered = lower(model, model.quantized(y, 0.0531, -3))
    lowered.check()
    check_unchanged(tmp_path / "small.onnx")
    assert "PoolMax" in lowered.operators


PADDED = [case for case, given in WINDOWS.items() if {"pads", "auto_pad", "ceil_mode"} & {*given}]


@pytest.mark.parametrize(
    ("case", "include"), [*((case, 0) for case in WINDOWS), *((case, 1) for case in PADDED)]
)
def test_average_pool(model, lower, tmp_path, case, include):
    x = model.quantized(model.input(1, 3, 7, 5), 0.05, 107, "uint8")
    y = model.node("AveragePool", x, count_include_pad=include, **WINDOWS[case])
    lower(model, model.quantized(y, 0.0531)).check()
    check_unchanged(tmp_path / "small.onnx", atol=0.054)


def test_a_pool_behind_one_that_leaves_a_window_out(model, lower, tmp_path):
    """Of which ONNX's shape inference says that it is one longer."""
    x = model.quantized(model.input(1, 2, 5, 9), 0.05, 7)
    y = model.node("MaxPool", x, kernel_shape=[1, 1], strides=[2, 2], pads=[0] * 4, ceil_mode=1)
    y = model.node("Transpose", y, perm=[0, 1, 3, 2])
    y = model.node("MaxPool", y, kernel_shape=[2, 2], strides=[1, 2], ceil_mode=1)
    lowered = lower(model, model.quantized(y, 0.0531))
    lowered.check()
    check_unchanged(tmp_path / "small.onnx")


def test_dilated_pools(model, lower):
    x = model.quantized(model.input(1, 2, 8, 9), 0.05, 7)
    y = model.node("MaxPool", x, kernel_shape=[2, 3], dilations=[3, 2], pads=[1, 0, 0, 1])
    y = model.quantized(y, 0.05, 7)
    z = model.node("AveragePool", y, kernel_shape=[2, 2], dilations=[1, 2], pads=[0, 1, 1, 0])
    lower(model, model.quantized(z, 0.0431), opset=19).check()


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_pools_over_one_axis(model, lower, operator):
    x = model.quantized(model.input(1, 3, 9), 0.05, 7)
    y = model.node(operator, x, kernel_shape=[3], strides=[2], pads=[1, 0])
    lowered = lower(model, model.quantized(y, 0.0531))
    lowered.check()
    assert lowered.graph.output.shape == (1, 3, 4)


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("image", [(7,), (5, 3)])
def test_pools_over_the_whole_image(model, lower, operator, image):
    x = model.quantized(model.input(1, 3, *image), 0.05, 7)
    lowered = lower(model, model.quantized(model.node(operator, x), 0.0531))
    lowered.check()
    assert lowered.graph.output.shape == (1, 3, *(1,) * len(image))


def test_a_max_pool_with_the_operands_quantization_moves_the_bytes_themselves(model, lower):
    x = model.quantized(model.input(1, 2, 4, 4), 0.05, 7)
    pooled = model.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    lowered = lower(model, model.quantized(pooled, 0.05, 7))
    lowered.check(equal=1.0)
    (layer,) = lowered.graph.layers
    (pool,) = (n for n in layer.expression.walk() if isinstance(n.operator, PoolMax))
    assert pool.dtype == "int8", "kernels read the stored bytes"
    assert layer.title == "largest of a window"


def test_a_max_pool_of_a_convolution_is_a_layer_behind_it(model, lower, tmp_path):
    """So that no window computes the convolution again."""
    x = model.quantized(model.input(1, 2, 6, 6), 0.05, 7)
    w = model.weights(RANDOM.integers(-127, 128, (3, 2, 3, 3)), 0.01)
    y = model.node("Relu", model.node("Conv", x, w, pads=[1, 1, 1, 1]))
    y = model.node("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    lowered = lower(model, model.quantized(y, 0.1, -128))
    lowered.check()
    check_unchanged(tmp_path / "small.onnx")
    convolution, pool = (
        {type(node.operator).__name__ for node in layer.expression.walk()}
        for layer in lowered.graph.layers
    )
    assert "Convolution" in convolution
    assert "PoolMax" not in convolution
    assert "PoolMax" in pool


def test_a_max_pool_of_a_sum_that_two_layers_read(model, lower):
    """No QuantizeLinear alone reads it, so it stays before the pool's own."""
    x = model.quantized(model.input(1, 2, 4, 4), 0.05)
    scaled = model.node("Mul", x, model.constant(RANDOM.uniform(0.5, 1, (2, 1, 1))))
    y = model.node("MaxPool", scaled, kernel_shape=[2, 2])
    first = model.quantized(y, 0.0531)
    second = model.quantized(model.node("Neg", y), 0.0631)
    lower(model, model.quantized(model.node("Add", first, second), 0.01)).check()


def test_a_max_pool_of_something_per_pixel_is_refused(model, lower):
    x = model.quantized(model.input(1, 1, 4, 4), 0.1)
    scaled = model.node("Mul", x, model.constant(RANDOM.uniform(0.5, 1, (4, 4))))
    y = model.node("MaxPool", scaled, kernel_shape=[2, 2])
    z = model.node("Add", model.quantized(y, 0.1, name="a"), model.quantized(y, 0.2, name="b"))
    with pytest.raises(UnsupportedOperator, match="MaxPool of something that is not") as caught:
        lower(model, model.quantized(z, 0.1))
    assert "QuantizeLinear" in caught.value.remedy


def test_the_places_of_a_max_pool_are_refused(model, lower):
    x = model.quantized(model.input(1, 1, 4, 4), 0.1)
    y = model.node("MaxPool", x, kernel_shape=[2, 2])
    model.nodes[-1].output.append("places")
    with pytest.raises(UnsupportedOperator, match="asks MaxPool for indices"):
        lower(model, model.quantized(y, 0.1))


def test_a_max_pool_leaves_no_automatic_padding_to_relax(model, tmp_path):
    x = model.quantized(model.input(1, 1, 5, 5), 0.1)
    y = model.node("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    model.output(model.quantized(y, 0.1))
    path = model.save(tmp_path / "small.onnx")
    assert "Pad" not in operators(path)


extents = st.integers(1, 4)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_window_is_what_a_loop_says(data):
    kernel, strides, dilation = (
        (data.draw(extents), data.draw(st.integers(1, 3))) for _ in range(3)
    )
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    padding = tuple(data.draw(st.integers(0, min(2, span - 1))) for span in spans * 2)
    image = tuple(data.draw(st.integers(span, span + 4)) for span in spans)
    window = Window(kernel, strides, padding, dilation)
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    array = random.integers(-128, 128, (1, 2, *image)).astype(np.int8)
    top, left, bottom, right = padding
    largest, total = (apply(kind(window), constant(array)) for kind in (PoolMax, PoolSum))
    counts = window.counts(array.shape)
    rows = (image[0] + top + bottom - spans[0]) // strides[0] + 1
    columns = (image[1] + left + right - spans[1]) // strides[1] + 1
    assert largest.shape == total.shape == (1, 2, rows, columns)
    for y in range(rows):
        for x in range(columns):
            covered = [
                array[0, 1, row, column]
                for row in range(y * strides[0] - top, y * strides[0] - top + spans[0], dilation[0])
                for column in range(
                    x * strides[1] - left, x * strides[1] - left + spans[1], dilation[1]
                )
                if 0 <= row < image[0] and 0 <= column < image[1]
            ]
            assert counts[y, x] == len(covered)
            assert total.operator.reference()[0, 1, y, x] == sum(map(int, covered))
            if covered:
                assert largest.operator.reference()[0, 1, y, x] == max(covered)
