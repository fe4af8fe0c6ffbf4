"""From answers to a row: what was answered counts, what was not does not."""

from __future__ import annotations

import numpy as np
import pytest

from entrain.deploy.boards import find_board
from entrain.deploy.build import Firmware
from entrain.deploy.device.counting import InstructionCounts
from entrain.deploy.device.protocol import Profile
from entrain.deploy.elf import Symbols
from entrain.deploy.errors import DeviceLost, DeviceMissing, ProtocolError
from entrain.deploy.lowering.artifact import LayerRecord, LoweredModel, TensorRecord
from entrain.deploy.measure import (
    Answers,
    Reference,
    Samples,
    ask_device,
    check_board,
    check_model,
    classes_of,
)
from entrain.deploy.result_row import result_row
from entrain.deploy.results import Result

TENSOR = {"shape": (2,), "dtype": "int8", "scale": 0.5, "zero_point": 0, "onnx_outputs": ("y",)}
MODEL = LoweredModel(
    name="mine",
    task="kws01",
    inputs=(TensorRecord(name="x", **TENSOR),),
    outputs=(TensorRecord(name="y", **TENSOR),),
    layers=(
        LayerRecord(name="y", id=0, op="dense", attention=True, macs=4, offset=None, **TENSOR),
    ),
    arena_bytes=64,
    arena_bound=64,
)
SAMPLES = Samples(np.array([0, 1, 1, 0]), ("a", "a", "b", "c"), ("no", "yes"))
RIGHT = np.array([[5, 1], [1, 5], [0, 3], [2, 1]], np.int8)
COUNTS = InstructionCounts(1000, {"layer_y": 900, "library": 100})


class Device:
    """Answers in turn; goes away when it has no answer left."""

    def __init__(self, outputs, counts=()):
        self._outputs, self._counts = iter(outputs), iter(counts)
        self.counts_instructions = bool(counts)

    def classify(self, _values):
        for output in self._outputs:
            return output.tobytes()
        raise DeviceLost("gone", where="there")

    def counts(self):
        return next(self._counts)

    def profile(self):
        return Profile("entrain-0.1.0 mine", "kws01")


def row(outputs, counts=COUNTS, lost=None, truth=RIGHT):
    board = find_board("mps2-an386")
    firmware = Firmware(board, None, 5000, 700, 200, Symbols((), {}))
    reference = Reference(np.zeros((4, 2), np.int8), truth, np.array([0, 1, 1, 1]), SAMPLES.truth)
    identity = Result(run="mine", task="keyword", attention="softmax", board=board.name)
    return result_row(identity, MODEL, firmware, SAMPLES, reference, Answers(outputs, counts, lost))


def ask(device, stop_after=99):
    asked = []
    inputs = np.zeros((4, 2), np.int8)
    return ask_device(device, inputs, 2, lambda: asked.append(1), lambda: len(asked) >= stop_after)


def test_all_answers_make_a_complete_row():
    found = row(RIGHT)
    assert found.complete
    assert found.accuracy.device == found.accuracy.int8_host == found.accuracy.float32 == 1
    assert (found.mismatches, found.onnxruntime_agreement) == (0, 0.75)
    assert found.confusion == ((2, 0), (0, 2))


def test_any_byte_that_differs_is_a_mismatch_though_the_class_is_the_same():
    outputs = RIGHT.copy()
    outputs[2, 0] = 1
    found = row(outputs)
    assert (found.mismatches, found.accuracy.device) == (1, 1)


def test_what_a_lost_device_answered_before_counts():
    found = row(RIGHT[:3], lost=DeviceLost("gone"))
    assert not found.complete
    assert (found.accuracy.n, found.accuracy.device, found.mismatches) == (3, 1, 0)
    assert found.confusion == ((1, 0), (0, 2))


def test_a_device_lost_at_once_has_a_row_without_figures():
    found = row(RIGHT[:0], counts=None, lost=DeviceLost("gone"))
    assert not found.complete
    assert (found.accuracy.n, found.accuracy.device) == (0, None)
    assert found.instructions is found.cycles is found.energy_uj is found.meter is None


def test_figures_without_counts_are_not_made_up():
    found = row(RIGHT, counts=None)
    assert found.complete
    assert found.instructions is found.latency_ms is found.layers[0].instructions is None


def test_counts_are_charged_to_layers_and_modelled_with_bounds():
    found = row(RIGHT)
    assert (found.instructions, found.layers[0].instructions) == (1000, 900)
    assert found.latency_ms.kind == found.energy_uj.kind == "modelled"
    assert found.cycles.low < found.cycles.value < found.cycles.high
    low, high = found.layers[0].cycles_bounds
    assert low < found.layers[0].cycles < high
    assert found.layers[0].cycles == pytest.approx(0.9 * found.cycles.value)
    assert (found.core_instructions, found.core_share) == (900, 0.9)
    assert found.amdahl_bound == pytest.approx(10)


def test_the_first_of_equal_outputs_is_the_class():
    assert classes_of(np.array([[3, 3, 1], [-1, 0, 0]], np.int8)).tolist() == [0, 1]


def test_asking_stops_where_the_device_is_lost():
    answers = ask(Device(RIGHT[:2]))
    assert answers.outputs.tolist() == RIGHT[:2].tolist()
    assert isinstance(answers.lost, DeviceLost)


def test_asking_stops_when_told_to():
    answers = ask(Device(RIGHT), stop_after=3)
    assert (len(answers.outputs), answers.lost) == (3, None)


def test_the_median_clip_stands_for_all():
    counts = [InstructionCounts(total, {"layer_y": total}) for total in (9, 1, 5, 7)]
    assert ask(Device(RIGHT, counts)).counts.total == 7


def test_a_device_with_another_model_is_refused():
    check_model(Device(RIGHT), "mine")
    with pytest.raises(DeviceMissing, match=r"runs 'entrain-0.1.0 mine', not the model yours"):
        check_model(Device(RIGHT), "yours")


def test_an_answer_with_an_output_missing_ends_the_work_and_is_not_filled_up():
    answers = ask(Device([RIGHT[0], RIGHT[1][:1], RIGHT[2]]))
    assert len(answers.outputs) == 1
    assert isinstance(answers.lost, ProtocolError)
    assert "1 outputs, and the model has 2" in answers.lost.what


def test_a_device_that_is_another_board_is_refused():
    device = Device([])
    device.name = lambda: "mps2-an386"
    check_board(device, find_board("mps2-an386"))
    with pytest.raises(DeviceMissing, match="answers as 'mps2-an386'"):
        check_board(device, find_board("mps3-an547"))


def test_a_subset_counts_what_was_answered_of_it():
    board = find_board("mps2-an386")
    firmware = Firmware(board, None, 5000, 700, 200, Symbols((), {}))
    hard = np.array([False, True, True, True])
    samples = Samples(SAMPLES.truth, None, SAMPLES.labels, {"hard": hard})
    reference = Reference(np.zeros((4, 2), np.uint8), RIGHT, SAMPLES.truth, np.array([0, 1, 0, 0]))
    identity = Result(run="mine", task="agreement", attention="softmax", board=board.name)
    answers = Answers(RIGHT[:3], None, DeviceLost("gone"))
    found = result_row(identity, MODEL, firmware, samples, reference, answers)
    subset = found.subsets["hard"]
    assert (subset.n, subset.device, subset.float32) == (2, 1.0, 0.5)
    assert subset.ci95[1] == 1
    assert row(RIGHT).subsets is None
