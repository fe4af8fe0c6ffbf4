"""Where a device differs: the layer, and the element by its place in the ONNX tensor."""

from __future__ import annotations

import numpy as np
import pytest
from programs import require_emulator

from entrain.deploy.boards import find_board
from entrain.deploy.build import build_firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.lowering.artifact import read_lowered, write_lowered
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.validation import Divergence, compare_layers, first_divergence

PLACE = (0, 3, 2, 4)  # batch, channel, row, column


@pytest.fixture
def convolved(model, lower):
    """Two convolutions; the image between them is stored with channels last."""
    random = np.random.default_rng(5)
    x = model.quantized(model.input(1, 2, 5, 6), 0.05)
    w = model.weights(random.integers(-127, 128, (4, 2, 1, 1)), 0.01)
    y = model.quantized(model.node("Conv", x, w), 0.04, name="image")
    w = model.weights(random.integers(-127, 128, (3, 4, 1, 1)), 0.01)
    return lower(model, model.quantized(model.node("Conv", y, w), 0.06))


def test_layers_json_says_in_which_order_a_value_is_stored(convolved, tmp_path):
    write_lowered(tmp_path, convolved.record)
    image, output = read_lowered(tmp_path).layers
    assert image.shape == (1, 5, 6, 4)
    assert image.axes == (0, 2, 3, 1)
    assert output.axes is None
    stored = np.arange(image.size).reshape(image.shape)
    in_onnx = stored.transpose(np.argsort(image.axes))
    for element in range(image.size):
        assert in_onnx[image.place(element)] == element
    assert output.place(output.size - 1) == (0, 2, 4, 5)


def test_the_first_that_differs_is_found_where_onnx_has_it(convolved, tmp_path):
    require_emulator()
    image, output = convolved.record.layers
    inputs = convolved.random_inputs(2)
    each = [interpret(convolved.graph, one) for one in inputs]
    golden = {name: np.stack([values[name] for values in each]) for name in each[0]}
    view = golden[image.name].transpose(0, *(1 + np.argsort(image.axes)))
    view[(1, *PLACE)] ^= 4
    golden[output.name][0, 0, 0, 0, 0] ^= 1
    sources = tmp_path / "lowered"
    board = find_board("mps2-an386")
    firmware = build_firmware(board, sources, tmp_path / "firmware.elf", trace=True)
    with connect(QemuAddress(board.name), firmware.image) as client:
        compared = compare_layers(client, convolved.record, golden)
    found = first_divergence(compared)
    assert found is not None
    assert found.name == image.name
    assert (found.differing, found.largest) == (1, 4)
    assert found.first == Divergence(1, PLACE)
    assert "by 4 steps at most; the first is [0, 3, 2, 4] of golden input 1" in str(found)
