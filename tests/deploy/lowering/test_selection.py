"""Rows of a table by the network's input, and fixed places of a tensor."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.gather import Gather
from entrain.deploy.lowering.operators.layout import Slice
from entrain.deploy.lowering.stage import golden_inputs


def ids(model, *shape, dtype=TensorProto.INT64):
    """An input of integers."""
    model.inputs.append(helper.make_tensor_value_info("ids", dtype, shape))
    return "ids"


def embedded(model, table, index, scale=0.01, axis=0, **quantization):
    """Rows of a dequantized table, quantized anew."""
    rows = model.node("Gather", model.weights(table, scale, **quantization), index, axis=axis)
    return model.quantized(rows, 0.02, name="rows")


def random_table(rows, width, seed=0):
    return np.random.default_rng(seed).integers(-127, 128, (rows, width))


def result(lowered, index):
    return interpret(lowered.graph, index)[lowered.graph.output.name]


def by_onnxruntime(lowered, index):
    outputs = lowered.onnx.run(np.asarray(index, np.int64))
    layer = lowered.graph.output
    return outputs[layer.onnx_output].reshape(layer.shape)


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_a_gather_is_numpys_for_every_id_in_the_table(data):
    rows, width = data.draw(st.integers(1, 256)), data.draw(st.integers(1, 5))
    shape = data.draw(st.sampled_from([(1,), (3,), (1, 4), (2, 3)]))
    table = random_table(rows, width, data.draw(st.integers(0, 99))).astype(np.int8)
    index = np.random.default_rng(rows).integers(0, rows, shape, np.uint8)
    node = apply(Gather(), constant(index), constant(table))
    np.testing.assert_array_equal(node.operator.reference(), table[index])
    assert node.shape == (*shape, width)


@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 99))
@settings(max_examples=6, deadline=None)
def test_the_whole_road_of_an_embedding(new_model, road, rows, width, seed):
    model = new_model()
    model.output(embedded(model, random_table(rows, width, seed), ids(model, 1, 5)))
    with tempfile.TemporaryDirectory() as folder:
        path = model.save(Path(folder) / "small.onnx")
        lowered = road.from_file(path, Path(folder) / "lowered")
        random = np.random.default_rng(seed)
        for index in random.integers(0, rows, (4, 1, 5), np.uint8):
            ours = result(lowered, index)
            assert np.abs(ours.astype(int) - by_onnxruntime(lowered, index)).max() <= 1
        lowered.check_c(random.integers(0, 256, (4, 1, 5), np.uint8))


def test_the_input_is_a_byte_for_each_id_as_it_is(model, lower):
    lowered = lower(model, embedded(model, random_table(9, 4), ids(model, 1, 5)))
    source = lowered.record.input
    assert (source.name, source.dtype, source.size) == ("ids", "uint8", 5)
    assert (source.scale, source.zero_point) == (1.0, 0)
    assert lowered.record.layers[0].op == "gather"
    assert "#define MODEL_INPUT_BYTES 5u" in lowered.source["model.h"]


@pytest.mark.parametrize("dtype", [TensorProto.INT32, TensorProto.INT64])
def test_ids_may_be_integers_of_either_width(model, lower, dtype):
    lowered = lower(model, embedded(model, random_table(9, 4), ids(model, 1, 5, dtype=dtype)))
    assert lowered.graph.input.dtype == "uint8"


def test_an_id_beyond_the_table_reads_its_last_row_and_no_other_memory(model, lower):
    lowered = lower(model, embedded(model, random_table(9, 4), ids(model, 1, 3)))
    beyond, last = np.array([[9, 200, 255]], np.uint8), np.array([[8, 8, 8]], np.uint8)
    expected = result(lowered, last)
    np.testing.assert_array_equal(result(lowered, beyond), expected)
    np.testing.assert_array_equal(lowered.host.run(beyond), expected)
    tried = golden_inputs(lowered.graph, None)["ids"]
    assert tried.max() > 9, "the stage itself tries such ids too"


def test_a_table_with_a_step_for_each_column_and_a_zero_point(model, lower):
    steps, zeros = np.array([0.01, 0.02, 0.015]), np.array([3, -5, 0])
    rows = model.node(
        "Gather", model.weights(random_table(9, 3), steps, zeros, axis=1), ids(model, 1, 4)
    )
    lowered = lower(model, model.quantized(rows, 0.02, name="rows"))
    index = np.array([[0, 8, 3, 5]], np.uint8)
    ours = result(lowered, index).astype(int)
    assert np.abs(ours - by_onnxruntime(lowered, index)).max() <= 1
    lowered.check_c([index])


def test_ids_may_be_moved_about_before_they_choose(model, lower):
    moved = model.node("Transpose", ids(model, 2, 3), perm=[1, 0])
    lowered = lower(model, embedded(model, random_table(9, 4), moved))
    index = np.array([[0, 1, 2], [6, 7, 8]], np.uint8)
    assert lowered.graph.output.shape == (3, 2, 4)
    ours = result(lowered, index).astype(int)
    assert np.abs(ours - by_onnxruntime(lowered, index)).max() <= 1


@pytest.mark.parametrize(
    ("places", "axis"),
    [
        *[(2, 1), (-1, 1), (0, 2), ([1], 1), ([0, 2, 4], 1), ([3, 2, 1], 1), ([-1, -2], 2)],
        *[([-5], 1), ([0, 1, 4], 1), ([3, 3, 0, 1, 2, 4, 4], 1), ([[0, 3], [-1, 0]], 2)],
    ],
)
def test_fixed_places_of_a_tensor(model, lower, places, axis):
    x = model.quantized(model.input(1, 5, 4), 0.1)
    chosen = model.node("Gather", x, model.constant(places, "int64"), axis=axis)
    lower(model, model.quantized(chosen, 0.1)).check(equal=1.0)


@pytest.mark.parametrize(
    ("start", "end", "axis", "step"),
    [(1, 4, 1, 1), (0, 100, 1, 2), (-2, 100, 1, 1), (3, 0, 1, -1), (1, 3, 2, 1)],
)
def test_a_slice_of_a_tensor(model, lower, start, end, axis, step):
    x = model.quantized(model.input(1, 5, 4), 0.1)
    bounds = [model.constant([value], "int64") for value in (start, end, axis, step)]
    lower(model, model.quantized(model.node("Slice", x, *bounds), 0.1)).check(equal=1.0)


def test_a_function_of_a_chosen_place_is_still_a_table(model, lower):
    x = model.quantized(model.input(1, 5, 4), 0.1)
    chosen = model.node("Gather", x, model.constant(2, "int64"), axis=1)
    lowered = lower(model, model.quantized(model.node("Sigmoid", chosen), 0.01))
    assert "Lookup" in lowered.operators
    lowered.check()


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_cut_is_numpys(data):
    shape = data.draw(st.sampled_from([(6,), (2, 6), (6, 3)]))
    axis = shape.index(6)
    chosen = data.draw(st.slices(6).filter(lambda cut: len(range(6)[cut])))
    places = range(6)[chosen]
    array = np.arange(np.prod(shape)).reshape(shape).astype(np.int8)
    cut = Slice(axis, places.start, places.step, len(places))
    index = tuple(chosen if k == axis else slice(None) for k in range(len(shape)))
    np.testing.assert_array_equal(cut.reference(array), array[index])


def refused(lower, model, tensor):
    with pytest.raises(UnsupportedOperator) as caught:
        lower(model, tensor)
    assert "tensor rows" in caught.value.where
    assert caught.value.remedy
    return caught.value.what


def test_a_vocabulary_that_no_byte_can_number_is_refused(model, lower):
    what = refused(lower, model, embedded(model, random_table(257, 4), ids(model, 1, 5)))
    assert "a table of 257 rows, and a firmware's input is one byte: 256 at most" in what


def test_a_table_that_leaves_no_choice_is_refused(model, lower):
    what = refused(lower, model, embedded(model, random_table(1, 4), ids(model, 1, 5)))
    assert "a table of one row" in what


def test_a_table_with_a_step_for_each_row_is_refused(model, lower):
    steps = np.array([0.01, 0.02, 0.03])
    what = refused(lower, model, embedded(model, random_table(3, 4), ids(model, 1, 5), steps))
    assert "a scale for each row" in what


def test_columns_chosen_by_ids_are_refused(model, lower):
    what = refused(lower, model, embedded(model, random_table(3, 4), ids(model, 1, 5), axis=1))
    assert "not a quantized constant table" in what


def test_a_table_that_is_not_quantized_is_refused(model, lower):
    table = model.constant(random_table(9, 4))
    rows = model.node("Gather", table, ids(model, 1, 5))
    assert "not a quantized constant table" in refused(
        lower, model, model.quantized(rows, 0.02, name="rows")
    )


def test_ids_that_are_calculated_with_are_refused(model, lower):
    shifted = model.node("Add", ids(model, 1, 5), model.constant(1, "int64"))
    what = refused(lower, model, embedded(model, random_table(9, 4), shifted))
    assert "not the model's integer input" in what


@pytest.mark.parametrize("places", [5, 7, -6, [4, 5], [-7, -6]])
def test_places_beyond_the_axis_are_refused_as_onnxruntime_does(model, lower, places):
    x = model.quantized(model.input(1, 5, 4), 0.1)
    chosen = model.node("Gather", x, model.constant(places, "int64"), axis=1)
    what = refused(lower, model, model.quantized(chosen, 0.1, name="rows"))
    assert "beyond the 5 elements" in what


def test_a_slice_of_nothing_is_refused(model, lower):
    x = model.quantized(model.input(1, 5, 4), 0.1)
    bounds = [model.constant([value], "int64") for value in (3, 3, 1, 1)]
    cut = model.node("Slice", x, *bounds)
    what = refused(lower, model, model.quantized(cut, 0.1, name="rows"))
    assert "a Slice of none of the 5 elements" in what
