"""Moves outside of a network's first and last quantizers."""

from __future__ import annotations

import numpy as np
import pytest
from rewritten import check_unchanged

from entrain.deploy.errors import EntrainError


def product(model, x):
    weights = np.random.default_rng(0).integers(-127, 128, (4, 5))
    return model.node("MatMul", x, model.weights(weights, np.full(5, 0.01), axis=1))


def turned(model, x):
    return model.node("Transpose", x, perm=[0, 2, 1])


def test_an_input_that_is_turned_before_it_is_quantized(model, lower, tmp_path):
    x = model.quantized(turned(model, model.input(1, 4, 6)), 0.03, 7)
    lowered = lower(model, model.quantized(product(model, x), 0.1))
    assert lowered.graph.input.shape == (1, 4, 6)
    assert (lowered.graph.input.scale, lowered.graph.input.zero_point) == (np.float32(0.03), 7)
    lowered.check()
    check_unchanged(tmp_path / "small.onnx")


def test_an_input_that_is_read_twice_once_turned_and_once_as_it_is(model, lower, tmp_path):
    x = model.input(1, 4, 4)
    y = model.node("Add", model.quantized(turned(model, x), 0.03, 7), model.quantized(x, 0.03, 7))
    lowered = lower(model, model.quantized(y, 0.06))
    lowered.check()
    check_unchanged(tmp_path / "small.onnx")


def test_an_input_that_is_quantized_in_two_ways_is_refused(model, lower):
    x = turned(model, model.input(1, 4, 4))
    y = model.node("Add", model.quantized(x, 0.03, 7), model.quantized(x, 0.02, 7))
    with pytest.raises(EntrainError, match="input features is not quantized"):
        lower(model, model.quantized(y, 0.06))


def test_an_input_that_is_also_read_unquantized_is_refused(model, lower):
    x = turned(model, model.input(1, 4, 4))
    y = model.node("Add", model.quantized(x, 0.03, 7), model.node("Relu", x))
    with pytest.raises(EntrainError, match="also read unquantized"):
        lower(model, model.quantized(y, 0.06))


def test_an_output_that_is_turned_after_it_was_dequantized(model, lower, tmp_path):
    x = model.quantized(model.input(1, 6, 4), 0.03, 7)
    y = turned(model, model.quantized(product(model, x), 0.1, -5, name="turned_later"))
    lowered = lower(model, y)
    assert lowered.graph.output.shape == (1, 5, 6)
    assert lowered.graph.output.zero_point == -5
    lowered.check()
    check_unchanged(tmp_path / "small.onnx")


def test_an_output_that_is_also_read_inside(model, lower, tmp_path):
    x = model.quantized(model.input(1, 6, 4), 0.03, 7)
    y = turned(model, model.quantized(product(model, x), 0.1, -5))
    model.output(y)
    z = model.quantized(model.node("Relu", y), 0.1)
    model.output(z)
    lowered = lower(model)
    assert len(lowered.graph.outputs) == 2
    lowered.check()
    check_unchanged(tmp_path / "small.onnx")
