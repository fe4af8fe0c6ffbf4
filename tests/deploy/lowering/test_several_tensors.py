"""Networks with several inputs or outputs: one buffer each, one tensor behind the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from entrain.deploy.boards import find_board
from entrain.deploy.build import build_firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.errors import ModelError, UnsupportedOperator
from entrain.deploy.lowering.artifact import read_lowered
from entrain.deploy.lowering.graph import Value
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.stage import lower
from entrain.deploy.lowering.tensors import (
    buffers,
    by_name,
    offsets,
    packed,
    random_integers,
    sole,
    unpacked,
)

RANDOM = np.random.default_rng(23)


def integers(*shape):
    return RANDOM.integers(-127, 128, shape)


def two_by_two(model):
    """A product of two inputs of odd sizes, and what was computed on the way."""
    a = model.quantized(model.input(1, 5, 3, name="left"), 0.05, 3)
    b = model.quantized(model.input(1, 3, 1, name="right"), 0.0431, 100, "uint8")
    product = model.quantized(model.node("MatMul", a, b), 0.1, -7)
    model.output(model.quantized(model.node("Relu", product), 0.0631, 0, "uint8"))
    model.output(product)
    return model


def test_two_inputs_and_two_outputs(model, lower):
    lowered = lower(two_by_two(model))
    lowered.check()
    sources, results = lowered.graph.inputs, lowered.graph.outputs
    assert [(value.size, value.dtype) for value in sources] == [(15, "int8"), (3, "uint8")]
    assert [(value.size, value.dtype) for value in results] == [(5, "uint8"), (5, "int8")]
    assert [record.name for record in lowered.record.inputs] == [value.name for value in sources]
    assert [layer.offset for layer in lowered.record.layers] == [None, None], "no arena is needed"


def test_the_buffers_hold_one_tensor_behind_the_other(model, lower):
    lowered = lower(two_by_two(model))
    (one,) = lowered.random_inputs(1)
    expected = interpret(lowered.graph, one)
    outputs = lowered.host.outputs(one)
    for value in lowered.graph.outputs:
        np.testing.assert_array_equal(outputs[value.name], expected[value.name])
    header = lowered.source["model.h"]
    assert "#define MODEL_INPUT_BYTES 18u" in header
    assert "#define MODEL_OUTPUT_BYTES 10u" in header
    assert "#define MODEL_OUTPUT_COUNT 5u" in header, "the scores are the first output"
    assert "from byte 15: uint8 1 x 3 x 1" in header
    assert "(const uint8_t *)&input[15]" in lowered.source["model.c"]


def test_an_output_that_later_layers_read(model, lower):
    """It lies in the caller's buffer, and is read there."""
    x = model.quantized(model.input(1, 9), 0.05)
    hidden = model.quantized(model.node("Neg", x), 0.05)
    model.output(model.quantized(model.node("Add", hidden, x), 0.0731))
    model.output(hidden)
    lowered = lower(model)
    lowered.check()
    assert lowered.record.arena_bytes == 0


def test_what_computes_no_output_is_left_out(model, lower):
    x = model.quantized(model.input(1, 9), 0.05)
    model.quantized(model.node("Relu", x), 0.05)
    model.output(model.quantized(model.node("Neg", x), 0.05))
    model.output(model.quantized(model.node("Abs", x), 0.05))
    assert len(lower(model).graph.layers) == 2


def test_ids_beside_features(model, lower):
    """Words by their numbers, and what is known of them."""
    model.inputs.append(helper.make_tensor_value_info("ids", TensorProto.INT64, (1, 4)))
    rows = model.node("Gather", model.weights(integers(9, 3), 0.01), "ids")
    rows = model.quantized(rows, 0.0131)
    features = model.quantized(model.input(1, 4, 3), 0.0231, 5)
    lowered = lower(model, model.quantized(model.node("Add", rows, features), 0.0331))
    ids, _ = lowered.graph.inputs
    assert (ids.name, ids.dtype) == ("ids", "uint8")
    lowered.check_c(lowered.random_inputs(4))


def test_a_mask_that_is_not_used_is_refused_by_name(model, lower):
    x = model.quantized(model.input(1, 4), 0.05)
    model.input(1, 4, name="mask")
    with pytest.raises(ModelError, match="input mask is not quantized"):
        lower(model, model.quantized(model.node("Neg", x), 0.05))


def test_inputs_quantized_in_two_ways_are_told_apart(model, lower):
    left, right = model.input(1, 4, name="left"), model.input(1, 4, name="right")
    x = model.node("Add", model.quantized(left, 0.05), model.quantized(right, 0.06))
    y = model.node("Add", x, model.quantized(right, 0.07))
    with pytest.raises(UnsupportedOperator, match="input right is quantized in two ways"):
        lower(model, model.quantized(y, 0.1))


def test_one_tensor_as_two_outputs_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.05)
    scale, zero = model.constant(0.05), model.constant(0, "int8")
    q = model.node("QuantizeLinear", model.node("Neg", x), scale, zero)
    for _ in range(2):
        model.output(model.node("DequantizeLinear", q, scale, zero))
    with pytest.raises(ModelError, match="two outputs of the model are the same tensor"):
        lower(model)


def test_an_input_as_output_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.05)
    model.output(model.quantized(model.node("Neg", x), 0.05))
    model.output(x)
    with pytest.raises(ModelError, match="nothing lies between"):
        lower(model)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_inputs_and_outputs_of_bytes(model, lower, dtype):
    """A file without the outer quantizers, as TensorFlow's converters write it."""
    kind = TensorProto.INT8 if dtype == "int8" else TensorProto.UINT8
    model.inputs.append(helper.make_tensor_value_info("bytes", kind, (1, 6)))
    scale, zero = model.constant(0.05), model.constant(9, dtype)
    x = model.node("DequantizeLinear", "bytes", scale, zero)
    w = model.weights(integers(6, 3), 0.01)
    y = model.quantize(model.node("MatMul", x, w), 0.1, 3, dtype)
    model.output(y, kind)
    lowered = lower(model)
    source, result = lowered.graph.input, lowered.graph.output
    assert (source.name, source.scale, source.zero_point) == ("bytes", np.float32(0.05), 9)
    for one in lowered.random_inputs(5):
        theirs = lowered.onnx.run(one)[result.onnx_output]
        assert np.abs(interpret(lowered.graph, one)[result.name].astype(int) - theirs).max() <= 1
    lowered.check_c(lowered.random_inputs(2))


def test_bytes_dequantized_in_two_ways_are_refused(model, lower):
    model.inputs.append(helper.make_tensor_value_info("bytes", TensorProto.INT8, (1, 6)))
    parts = [model.node("DequantizeLinear", "bytes", model.constant(s)) for s in (0.1, 0.2)]
    with pytest.raises(UnsupportedOperator, match="input bytes is quantized in two ways"):
        lower(model, model.quantized(model.node("Add", *parts), 0.1))


def test_the_stage_and_a_device(model, tmp_path):
    """The same bytes from numpy, from the C here, and from an emulated board."""
    path = two_by_two(model).save(tmp_path / "pair.onnx")
    folder = tmp_path / "lowered"
    lower(path, folder, task="pair", name="pair")
    record = read_lowered(folder)
    with np.load(folder / "golden.npz") as stored:
        golden = dict(stored)
    board = find_board("mps2-an386")
    image = build_firmware(board, folder, tmp_path / "pair.elf").image
    with connect(QemuAddress(board.name), image) as client:
        for index, given in enumerate(buffers(record.inputs, golden)[:3]):
            answer = unpacked(record.outputs, client.classify(given))
            for each in record.outputs:
                np.testing.assert_array_equal(answer[each.name], golden[each.name][index])
        assert len(client.results()) == 5, "scores of the first output"


def tensors(*sizes):
    return [Value(f"t{k}", (1, size), "int8", 1.0, 0, "") for k, size in enumerate(sizes)]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_packing_and_unpacking_are_inverse(sizes):
    values = tensors(*sizes)
    arrays = {v.name: RANDOM.integers(-128, 128, v.shape).astype(np.int8) for v in values}
    buffer = packed(values, arrays)
    assert len(buffer) == sum(sizes)
    assert list(offsets(values).values()) == list(np.cumsum([0, *sizes[:-1]]))
    for name, array in unpacked(values, buffer).items():
        np.testing.assert_array_equal(array, arrays[name])


def test_a_bare_array_is_that_of_the_only_tensor():
    (only,) = tensors(3)
    np.testing.assert_array_equal(by_name([only], np.arange(3))["t0"], [[0, 1, 2]])
    with pytest.raises(ModelError, match="2 inputs"):
        by_name(tensors(3, 2), np.arange(3))


def test_random_integers_are_the_same_every_time_and_use_the_whole_range():
    drawn = [random_integers(tensors(500, 2), 4) for _ in range(2)]
    for name, array in drawn[0].items():
        np.testing.assert_array_equal(array, drawn[1][name])
    assert drawn[0]["t0"].shape == (4, 1, 500)
    assert (drawn[0]["t0"].min(), drawn[0]["t0"].max()) == (-128, 127)


def test_what_does_not_fit_a_tensor_is_told():
    with pytest.raises(ValueError, match="t0: expected 3 integers, got 2"):
        by_name(tensors(3), np.arange(2))
    with pytest.raises(ValueError, match="nothing is given for t1"):
        by_name(tensors(3, 2), {"t0": np.arange(3)})


def test_a_verb_for_one_tensor_names_those_there_are():
    with pytest.raises(ModelError, match=r"2 outputs \(t0, t1\)") as caught:
        sole(tensors(3, 2), "output")
    assert "one output" in caught.value.remedy
