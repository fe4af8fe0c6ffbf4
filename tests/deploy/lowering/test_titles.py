"""What a layer is called for people: by its heaviest operator."""

from __future__ import annotations

import numpy as np
import pytest

TITLES = {
    "ReduceMax": "largest or smallest",
    "ReduceMin": "largest or smallest",
    "ReduceMean": "mean",
    "Softmax": "softmax",
    "LogSoftmax": "softmax",
}


@pytest.mark.parametrize("operator", TITLES)
def test_a_row_reduced_to_one_number_or_shared_out(model, lower, operator):
    x = model.quantized(model.input(1, 4, 6), 0.05, 3)
    given = {"axis": -1} if "Softmax" in operator else {"axes": [2], "keepdims": 1}
    lowered = lower(model, model.quantized(model.node(operator, x, **given), 0.02))
    assert [layer.title for layer in lowered.graph.layers] == [TITLES[operator]]


@pytest.mark.parametrize(("groups", "title"), [(1, "convolution"), (4, "depthwise convolution")])
def test_a_convolution_says_whether_it_mixes_channels(model, lower, groups, title):
    x = model.quantized(model.input(1, 4, 5, 5), 0.05)
    weights = np.random.default_rng(1).integers(-127, 128, (4, 4 // groups, 3, 3))
    y = model.node("Conv", x, model.weights(weights, 0.01), group=groups)
    lowered = lower(model, model.quantized(model.node("Relu", y), 0.04))
    assert [layer.title for layer in lowered.graph.layers] == [title]
