"""What is lowered is held to onnxruntime, which read the same file by itself."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from entrain.deploy.errors import Mismatch
from entrain.deploy.lowering.network import read_network
from entrain.deploy.lowering.onnx_comparison import compare_with_onnxruntime
from entrain.deploy.lowering.stage import golden_inputs, golden_values, lower

RANDOM = np.random.default_rng(11)
WEIGHTS = RANDOM.integers(-127, 128, (8, 6))


def product(model, weights):
    """Ends in a matrix product with these weights."""
    x = model.quantized(model.input(1, 4, 8), 0.05, 3)
    y = model.node("MatMul", x, model.weights(weights, 0.01))
    model.output(model.quantized(y, 0.1, -7))
    return model


def compared(path, lowered_from=None):
    graph = read_network(lowered_from or path, "small")
    return compare_with_onnxruntime(path, graph, golden_values(graph, golden_inputs(graph, None)))


def test_the_stage_says_how_far_its_outputs_are_from_onnxruntimes(model, tmp_path):
    path = product(model, WEIGHTS).save(tmp_path / "small.onnx")
    found = lower(path, tmp_path / "lowered", task="linear", name="small").onnxruntime
    assert found.elements == 8 * 4 * 6
    assert found.differing <= 2
    assert found.largest_steps <= 1


def test_outputs_of_another_network_are_noticed(new_model, tmp_path):
    right = product(new_model(), WEIGHTS).save(tmp_path / "right.onnx")
    wrong = product(new_model(), WEIGHTS[::-1]).save(tmp_path / "wrong.onnx")
    with pytest.raises(Mismatch, match="steps from onnxruntime's on average") as caught:
        compared(right, lowered_from=wrong)
    assert caught.value.where == str(right)


def test_each_differing_element_counts(new_model, tmp_path):
    changed = WEIGHTS.copy()
    changed[0, 2] += 2  # one of six columns, by a step or two
    right = product(new_model(), WEIGHTS).save(tmp_path / "right.onnx")
    wrong = product(new_model(), changed).save(tmp_path / "wrong.onnx")
    found = compared(right, lowered_from=wrong)
    assert 0 < found.differing <= 8 * 4 + 2
    assert 1 <= found.largest_steps < 4


def test_outputs_that_are_integers_in_the_file_and_several_inputs(model, tmp_path):
    a, b = (model.quantized(model.input(1, 5, name=name), 0.05) for name in "ab")
    y = model.quantize(model.node("Add", a, b), 0.1, 120, "uint8")
    model.outputs.append(helper.make_tensor_value_info(y, TensorProto.UINT8, (1, 5)))
    found = compared(model.save(tmp_path / "small.onnx"))
    assert (found.elements, found.largest_steps <= 1) == (8 * 5, True)


def test_random_numbers_that_are_no_indices_are_not_compared(model, tmp_path, capfd):
    model.inputs.append(helper.make_tensor_value_info("words", TensorProto.INT64, (1, 7)))
    table = model.weights(RANDOM.integers(-127, 128, (5, 6)), 0.01)
    model.output(model.quantized(model.node("Gather", table, "words"), 0.01))
    assert compared(model.save(tmp_path / "small.onnx")) is None
    assert capfd.readouterr().err == ""
