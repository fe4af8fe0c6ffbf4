"""Shapes, scales and zero points that nobody chose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_networks import network

extents = st.integers(1, 9)
scales = st.floats(0.004, 0.3)


@st.composite
def types(draw):
    dtype = draw(st.sampled_from(["int8", "uint8"]))
    low, high = (-128, 127) if dtype == "int8" else (0, 255)
    return draw(st.integers(low, high)), dtype


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("random")


def integers(data, *shape):
    random = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    return random.integers(-127, 128, shape)


def finish(road, model, tensor, folder, compiled):
    model.output(tensor)
    lowered = road.from_file(model.save(folder / "small.onnx"), folder / "lowered")
    inputs = lowered.random_inputs(4)
    worst, equal = lowered.difference_from_onnxruntime(inputs)
    assert worst <= 1
    assert equal >= 0.5  # of scales in simple ratios half the results are ties
    if compiled:
        lowered.check_c(inputs)


def matmul(data, model):
    heads, rows, summed, columns = (data.draw(extents) for _ in range(4))
    x = model.quantized(model.input(1, heads, rows, summed), data.draw(scales), *data.draw(types()))
    per_column = np.asarray(data.draw(st.lists(scales, min_size=columns, max_size=columns)))
    w = model.weights(integers(data, summed, columns), per_column / 8, axis=1)
    y = model.node("MatMul", x, w)
    y = model.node("Relu", y) if data.draw(st.booleans()) else y
    return model.quantized(y, data.draw(scales), *data.draw(types()))


def convolution(data, model):
    groups, per_group, outputs = (data.draw(st.integers(1, 3)) for _ in range(3))
    kernel = [data.draw(st.integers(1, 3)) for _ in range(2)]
    dilations = [data.draw(st.integers(1, 2)) for _ in range(2)]
    image = [
        data.draw(st.integers(d * (k - 1) + 1, 8)) for d, k in zip(dilations, kernel, strict=True)
    ]
    x = model.input(1, groups * per_group, *image)
    x = model.quantized(x, data.draw(scales), *data.draw(types()))
    w = model.weights(integers(data, groups * outputs, per_group, *kernel), data.draw(scales) / 8)
    y = model.node(
        "Conv",
        x,
        w,
        group=groups,
        dilations=dilations,
        strides=[data.draw(st.integers(1, 3)) for _ in range(2)],
        # no wider than the kernel reaches, so that something of the image is always read
        pads=[
            data.draw(st.integers(0, min(2, d * (k - 1))))
            for d, k in [*zip(dilations, kernel, strict=True)] * 2
        ],
    )
    return model.quantized(y, data.draw(scales), *data.draw(types()))


def elementwise(data, model):
    shape = [data.draw(st.integers(1, 4)) for _ in range(data.draw(st.integers(1, 3)))]
    x = model.quantized(model.input(1, *shape), data.draw(scales), *data.draw(types()))
    y = model.quantized(model.node("Neg", x), data.draw(scales), *data.draw(types()))
    operator = data.draw(st.sampled_from(["Add", "Sub", "Mul"]))
    other = data.draw(st.sampled_from([x, model.constant(np.full(shape, 0.37))]))
    z = model.node(operator, y, other)
    axes = model.constant([data.draw(st.integers(0, len(shape)))], "int64")
    if data.draw(st.booleans()):
        z = model.node("ReduceSum", z, axes, keepdims=data.draw(st.integers(0, 1)))
    return model.quantized(z, data.draw(scales), *data.draw(types()))


KINDS = [matmul, convolution, elementwise]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_interpreter_is_within_a_step_of_onnxruntime(new_model, road, folder, kind, data):
    model = new_model()
    finish(road, model, kind(data, model), folder, compiled=False)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_the_c_is_the_interpreter(new_model, road, folder, kind, data):
    model = new_model()
    finish(road, model, kind(data, model), folder, compiled=True)


def whole_road(data, road, model, folder):
    """Within a step of onnxruntime layer by layer, and the C equal to the bit."""
    network(data, model)
    path = model.save(folder / "network.onnx")
    lowered = road.from_file(path, folder / "network")
    inputs = lowered.random_inputs(3)
    worst, equal = lowered.difference_from_onnxruntime(inputs)
    assert worst <= 1
    assert equal >= 0.5
    lowered.check_c(inputs)


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_random_network_the_whole_road(new_model, road, folder, data):
    whole_road(data, road, new_model(), folder)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_three_hundred_random_networks_the_whole_road(new_model, road, folder, data):
    whole_road(data, road, new_model(), folder)
