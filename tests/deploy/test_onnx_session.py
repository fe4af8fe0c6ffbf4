"""The oracle runs files as they are written, and says when it cannot."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from entrain.deploy.errors import ModelError
from entrain.deploy.onnx_session import OnnxSession


@pytest.fixture
def doubling(tmp_path):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3]) for n in ("y", "z")]
    nodes = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    model = helper.make_model(
        helper.make_graph(nodes, "doubling", inputs, outputs),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(model, str(tmp_path / "doubling.onnx"))
    return tmp_path / "doubling.onnx"


@pytest.mark.parametrize("serialized", [False, True])
def test_every_output_comes_by_name(doubling, serialized):
    session = OnnxSession(doubling.read_bytes() if serialized else doubling, "doubling")
    assert session.outputs == ("y", "z")
    results = session.run(np.array([[1, 2, 3]], np.float32))
    assert results["y"].tolist() == [[2, 4, 6]]
    assert results["z"].tolist() == [[-1, -2, -3]]


def test_the_prediction_is_the_largest_of_the_first_output(doubling):
    features = np.array([[1, 5, 2], [7, 0, 0], [1, 2, 3]], np.float32)
    assert OnnxSession(doubling, "doubling").predict(features).tolist() == [1, 0, 2]


@pytest.mark.parametrize("content", [b"", b"nothing of the kind"])
def test_what_it_cannot_run_is_a_model_error(tmp_path, content):
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="onnxruntime cannot run it") as caught:
        OnnxSession(path, "the broken model")
    assert caught.value.where == "the broken model"


def test_a_missing_file_is_a_model_error(tmp_path):
    with pytest.raises(ModelError):
        OnnxSession(tmp_path / "absent.onnx", "absent")
