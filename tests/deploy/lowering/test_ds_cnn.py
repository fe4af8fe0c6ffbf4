"""MLPerf Tiny's DS-CNN, with random weights: exact everywhere, and as cheap as was aimed at."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from programs import require_emulator

from entrain.deploy.boards import find_board
from entrain.deploy.build import build_firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.lowering.kernels import find_kernel
from entrain.deploy.lowering.program import build_program

MACS = 2_656_768
CHANNELS = 64


@dataclass(frozen=True)
class Goal:
    """Instructions a multiply-add and bytes, at most."""

    whole: float
    pointwise: float
    depthwise: float
    flash: int
    ram: int


GOALS = {
    "mps2-an386": Goal(1.9, 1.5, 4.0, 60 * 1024, 11_000),
    "mps3-an547": Goal(0.5, 0.3, 1.2, 60 * 1024, 11_000),
}


def unit(model, x, step, kernel, channels, groups=1, **attributes):
    """Convolution, ReLU, 8 bits; the steps of image and weights, and of the int32 bias."""
    random = np.random.default_rng(len(model.nodes))
    shape = (CHANNELS, channels // groups, *kernel)
    steps = random.uniform(0.5, 1, CHANNELS) / np.sqrt(np.prod(shape[1:])) / 90
    steps = steps.astype(np.float32)
    weights = model.weights(random.integers(-127, 128, shape), steps)
    bias = random.integers(-1000, 1000, CHANNELS)
    bias = model.weights(bias, steps * np.float32(step), dtype="int32")
    y = model.node("Relu", model.node("Conv", x, weights, bias, group=groups, **attributes))
    return model.quantized(y, 0.012, -128)


def ds_cnn(model):
    x = model.quantized(model.input(1, 1, 49, 10), 0.05, 5)
    x = unit(model, x, 0.05, (10, 4), 1, strides=[2, 2], pads=[4, 1, 5, 1])
    for _ in range(4):
        x = unit(model, x, 0.012, (3, 3), CHANNELS, CHANNELS, pads=[1, 1, 1, 1])
        x = unit(model, x, 0.012, (1, 1), CHANNELS)
    x = model.quantized(model.node("GlobalAveragePool", x), 0.01, -128)
    weights = model.weights(np.random.default_rng(1).integers(-127, 128, (CHANNELS, 12)), 0.01)
    return model.quantized(model.node("MatMul", model.node("Flatten", x), weights), 0.1, 3)


@pytest.fixture(scope="module")
def lowered(new_model, road, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ds_cnn")
    model = new_model()
    model.output(ds_cnn(model))
    return road.from_file(model.save(folder / "model.onnx"), folder / "lowered"), folder


def test_it_is_within_a_step_of_onnxruntime_and_its_c_exact(lowered):
    network, _ = lowered
    assert network.graph.macs == MACS
    network.check(network.random_inputs(2))


def test_every_convolution_and_the_pool_are_kernels(lowered):
    network, _ = lowered
    headers = [getattr(find_kernel(layer), "header", None) for layer in network.graph.layers]
    assert headers[0] == "entrain_convolution.h"
    assert headers[1:9] == ["entrain_depthwise.h", "entrain_matmul.h"] * 4
    assert headers[9] == "entrain_pool.h"


def test_every_map_lies_in_the_bytes_of_the_one_before(lowered):
    network, _ = lowered
    program = build_program(network.graph)
    maps = [layer.name for layer in network.graph.layers[:9]]
    assert all(program.plan.overwritten[name] == read for read, name in pairwise(maps))
    most = max(function.scratch_bytes for function in program.functions)
    assert program.plan.arena_bytes == program.plan.bound == 8000 + most < 9000


@pytest.mark.parametrize("board", GOALS)
def test_instructions_and_memory_on_a_board(lowered, board):
    require_emulator()
    network, folder = lowered
    image = folder / f"firmware-{board}.elf"
    firmware = build_firmware(find_board(board), folder / "lowered", image)
    (one,) = network.random_inputs(1)
    with connect(QemuAddress(board), image) as client:
        output = client.classify(one.tobytes())
        counts = client.counts()
    assert output == network.interpret(one).tobytes()
    goal, layers = GOALS[board], network.graph.layers
    instructions = {layer.name: _of(counts.by_function, layer.symbol) for layer in layers}
    assert counts.total / MACS <= goal.whole
    assert instructions[layers[1].name] / layers[1].macs <= goal.depthwise
    assert instructions[layers[2].name] / layers[2].macs <= goal.pointwise
    assert firmware.flash_bytes <= goal.flash
    assert firmware.ram_bytes <= goal.ram


def _of(by_function, symbol):
    """The compiler may add to a name."""
    return sum(n for name, n in by_function.items() if name.split(".")[0] == symbol)
