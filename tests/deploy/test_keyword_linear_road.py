"""The linear keyword network on its way from clips to what two boards answer."""

from __future__ import annotations

import pytest

from entrain.deploy.lowering.artifact import read_lowered
from entrain.deploy.results_file import read_results
from entrain.deploy.runs import Run

BOARDS = ("mps2-an386", "mps3-an547")


@pytest.fixture(scope="module")
def compared(tones, compare_first):
    """A comparison of two mechanisms on two emulated boards; for looking at only."""
    mechanisms = ("softmax", "oscillator-separable")
    return compare_first("keyword-linear", tones, mechanisms, "--epochs", 1, "--samples", 6)


def test_both_mechanisms_answer_every_clip_as_this_machine_computes(compared):
    ended, runs_dir = compared
    rows = read_results(runs_dir / "compare-first" / "results.json").results
    assert [(row.attention, row.board) for row in rows] == [
        (attention, board) for attention in ("softmax", "oscillator") for board in BOARDS
    ]
    assert len(ended.value) == 4
    for row in rows:
        assert (row.task, row.data, row.accuracy.n) == ("keyword-linear", "tones", 6)
        assert row.complete
        assert (row.mismatches, row.accuracy.device) == (0, row.accuracy.int8_host)


def test_the_firmware_announces_itself_as_every_keyword_spotter(compared):
    _, runs_dir = compared
    run = Run(runs_dir / "keyword-linear-softmax-tones-seed0-e1")
    model = read_lowered(run.lowered)
    assert (model.task, model.input.size, model.output.size) == ("kws01", 49 * 40, 3)


def test_the_papers_norm_and_activation_are_profiled_by_layer(compared, run_entrain):
    _, runs_dir = compared
    ended = run_entrain(
        *("profile", "--run", "keyword-linear-oscillator-separable-tones-seed0-e1"),
        *("--runs-dir", runs_dir, "--board", "mps2-an386", "--json"),
    )
    assert ended.code == 0, ended.err
    layers = {layer["name"]: layer for layer in ended.value["layers"]}
    does = {name: layers[name]["op"] for name in ("attention_norm", "feed_norm", "expanded")}
    assert does == {
        "attention_norm": "normalization",
        "feed_norm": "normalization",
        "expanded": "lookup",
    }
    assert all(layer["instructions"] > 0 for layer in layers.values())


def test_the_help_names_the_task(run_entrain):
    for command in ("train", "compare"):
        assert "keyword-linear" in run_entrain(command, "--help").out
