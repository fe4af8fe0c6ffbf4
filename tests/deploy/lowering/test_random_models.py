"""Operators, shapes, scales and zero points that nobody chose, on this machine and every core."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from many_networks import CORES, ManyNetworks, Network
from programs import require_emulator
from random_networks import network, networks

# an M3 computes as an M0 does, which forgives less
INSTRUCTION_SETS = tuple(core for core in CORES if core != "mps2-an385")

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


# the random networks below have such layers too
@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_the_c_is_the_interpreter(new_model, road, folder, kind, data):
    model = new_model()
    finish(road, model, kind(data, model), folder, compiled=True)


def check_this_machine(lowered):
    """Within a step of onnxruntime layer by layer, and the C equal to the bit."""
    inputs = lowered.random_inputs(3)
    worst, equal = lowered.difference_from_onnxruntime(inputs)
    # an oscillator without a clear field multiplies the roundings of its couplings
    assert worst <= 1 or any("oscillator" in layer.title for layer in lowered.graph.layers)
    assert equal >= 0.5
    lowered.check_c(inputs)


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_random_network_the_whole_road(new_model, road, folder, data):
    model = new_model()
    network(data, model)
    check_this_machine(road.from_file(model.save(folder / "one.onnx"), folder / "network"))


def check_cores(new_model, road, folder, count, seed, cores):
    """Random networks on this machine, and all in one firmware on each of some cores."""
    lowered = []
    for number, model in enumerate(networks(new_model, count, seed)):
        name = f"network_{number:02}"
        path = model.save(folder / f"{name}.onnx")
        try:
            one = road.from_file(path, folder / name)
            check_this_machine(one)
        except Exception as error:
            error.add_note(f"in {path}")
            raise
        lowered.append(Network(name, path, one.graph, one.source))
    many = ManyNetworks(tuple(lowered))
    found = [line for board in cores for line in many.differences(folder, board, 3)]
    assert not found, "\n".join(found)


@pytest.fixture
def first_seed(request) -> int:
    """Of the networks; ``--hypothesis-seed=1`` gives other ones than usual."""
    require_emulator("cc")
    return 1000 * int(request.config.getoption("--hypothesis-seed") or 0)


def test_twenty_random_networks_on_every_instruction_set(new_model, road, tmp_path, first_seed):
    check_cores(new_model, road, tmp_path, 20, first_seed, INSTRUCTION_SETS)


@pytest.mark.long
@pytest.mark.parametrize("batch", range(1, 13))
def test_three_hundred_random_networks_on_every_core(new_model, road, tmp_path, first_seed, batch):
    check_cores(new_model, road, tmp_path, 25, first_seed + batch, CORES)
