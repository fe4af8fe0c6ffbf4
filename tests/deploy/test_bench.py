"""The bench: exact counts of our kernels and of other compilers', every result checked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from programs import require_emulator

from entrain.deploy.bench import runner, shapes
from entrain.deploy.bench.cases import CASES
from entrain.deploy.bench.ds_cnn import ds_cnn_model
from entrain.deploy.bench.published import cmsis_nn
from entrain.deploy.bench.variants import MAKERS
from entrain.deploy.boards import find_board
from entrain.deploy.errors import Mismatch
from entrain.deploy.lowering.operators.convolution import Convolution

BOARD = "mps2-an386"
# instructions of the softmax core at most; the oscillators' stand beside their kernels' tests
GOALS = {"mps2-an386": 280_000, "mps3-an547": 110_000}


@pytest.fixture(scope="module", autouse=True)
def _programs():
    require_emulator()


def small_convolution():
    operator = Convolution((1, 2), (1, 1, 1, 1), (1, 1), 1)
    return shapes.convolution("small", (5, 4, 3), (6, 3, 3, 3), operator)


@pytest.mark.parametrize(
    ("network", "nobodys"),
    [
        (shapes.fully_connected(3, 9, 5), set()),
        (small_convolution(), set()),
        (shapes.gelu(3, 9), set()),
        (shapes.layer_norm(3, 9), {"c_loop"}),
    ],
    ids=["product", "convolution", "lookup", "normalization"],
)
def test_a_layer_is_counted_beside_what_other_compilers_make_of_it(network, nobodys, tmp_path):
    measured = runner.measure_case("small", network, find_board(BOARD), tmp_path)
    assert set(measured.others) == set(MAKERS)
    assert {key for key, count in measured.others.items() if count is None} == nobodys
    assert measured.macs == network.macs
    for count in (measured.instructions, *measured.others.values()):
        assert count is None or count > measured.macs / 2, "two products an instruction at most"


@pytest.mark.parametrize(
    ("network", "without"),
    [(shapes.layer_norm(3, 9), {"c_loop"}), (shapes.gelu(3, 9), set())],
    ids=["normalization", "table"],
)
def test_what_calls_inline_functions_is_counted_with_them(network, without, tmp_path):
    measured = runner.measure_case("small", network, find_board(BOARD), tmp_path)
    assert {name for name, count in measured.others.items() if count is None} == without
    assert min(filter(None, measured.others.values())) > measured.instructions


def test_what_only_a_kernel_computes_has_no_other_form(tmp_path):
    network = shapes.oscillator_core("separable", 2, 5, 4)
    measured = runner.measure_case("small", network, find_board(BOARD), tmp_path)
    assert set(measured.others.values()) == {None}
    assert measured.instructions > 0


def test_a_wrong_result_is_no_figure(tmp_path, monkeypatch):
    right = runner.layer_function

    def wrong(layer):
        function = right(layer)
        body = function.text.rindex("}")
        return replace(function, text=f"{function.text[:body]}    output[3] ^= 1;\n}}\n")

    monkeypatch.setattr(runner, "layer_function", wrong)
    with pytest.raises(Mismatch, match="1 of 15 elements of ours differ"):
        runner.measure_case("small", shapes.fully_connected(3, 9, 5), find_board(BOARD), tmp_path)


@pytest.mark.parametrize("board", GOALS)
def test_the_softmax_core_stays_within_what_was_set_for_it(board, tmp_path):
    network = CASES["attention core softmax"]()
    measured = runner.measure_case("softmax", network, find_board(board), tmp_path)
    assert measured.instructions <= GOALS[board]


def test_the_ds_cnn_is_mlperf_tinys():
    model = ds_cnn_model()
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    assert len(convolutions) == 9
    shapes_by_name = {
        info.name: [d.dim_value for d in info.type.tensor_type.shape.dim]
        for info in model.graph.value_info
    }
    weights = {node.output[0]: node.input[0] for node in model.graph.node}
    arrays = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    macs = 64 * 12
    for node in convolutions:
        kernel = arrays[weights[node.input[1]]]
        macs += int(np.prod(shapes_by_name[node.output[0]]) * np.prod(kernel[1:]))
    assert macs == 2_656_768


def test_published_figures_are_of_cases_that_exist():
    for board in (BOARD, "mps3-an547"):
        assert set(cmsis_nn(board)) <= set(CASES)
        assert cmsis_nn(board)


def test_an_unknown_case_lists_those_there_are(entrain_here):
    ended = entrain_here("bench", "--only", "nonsense")
    assert (ended.code, ended.out) == (2, "")
    assert "attention core softmax" in ended.err


def test_the_command_prints_a_row_a_case_and_board(entrain_here):
    ended = entrain_here("bench", "--only", "residual add", "--boards", BOARD, "--json")
    assert ended.code == 0, ended.err
    (row,) = ended.value
    assert row["name"] == "residual add 49x32"
    assert row["board"] == BOARD
    assert 0 < row["instructions"] < row["tvm_unscheduled"]
    assert row["cmsis_nn"] == 127_497


def test_a_board_of_which_llvm_knows_nothing_has_no_form_through_it():
    board = find_board(BOARD).model_copy(update={"llvm_triple": None})
    (layer,) = shapes.fully_connected(3, 9, 5).layers
    assert MAKERS["tvm_llvm"](layer, board) is None
