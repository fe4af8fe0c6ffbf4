"""Sentences on their way from a folder to what two boards answer."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.lowering.artifact import read_lowered
from entrain.deploy.lowering.host import HostModel
from entrain.deploy.results_file import read_results
from entrain.deploy.runs import Run
from entrain.models.data.agreement import VOCABULARY, generate_agreement

BOARDS = ("mps2-an386", "mps3-an547")
COUNTS = {"train": 200, "val": 40, "test": 60}


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    """A folder of a few of the templates' sentences."""
    folder = tmp_path_factory.mktemp("data") / "sentences"
    folder.mkdir()
    test = generate_agreement().test
    rows = iter(zip(test.texts, test.targets.tolist(), test.hard.tolist(), strict=True))
    for name, count in COUNTS.items():
        lines = ["label\tverb_index\tdistractor\tsentence"]
        for _ in range(count):
            text, agrees, hard = next(rows)
            verb = len(text.split()) - 2
            lines.append(f"{agrees}\t{verb}\t{'attract' if hard else 'none'}\t{text}")
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def compared(sentences, compare_first):
    """A comparison of two mechanisms on two emulated boards; for looking at only."""
    return compare_first("agreement", sentences, ("softmax", "oscillator-relu"), "--epochs", 2)


def rows_of(runs_dir):
    return read_results(runs_dir / "compare-first" / "results.json").results


def test_both_mechanisms_answer_every_sentence_as_this_machine_computes(compared):
    ended, runs_dir = compared
    rows = rows_of(runs_dir)
    assert [(row.attention, row.board) for row in rows] == [
        (attention, board) for attention in ("softmax", "oscillator") for board in BOARDS
    ]
    assert len(ended.value) == 4
    for row in rows:
        assert (row.task, row.data, row.accuracy.n) == ("agreement", "sentences", 60)
        assert row.complete
        assert (row.mismatches, row.accuracy.device) == (0, row.accuracy.int8_host)
        assert row.onnxruntime_agreement >= 0.98


def test_words_beyond_the_table_are_read_as_its_last_one_on_the_device_too(compared):
    _, runs_dir = compared
    run = Run(runs_dir / "agreement-oscillator-relu-sentences-seed0-e2")
    model = read_lowered(run.lowered)
    last = len(VOCABULARY) - 1
    host, sentence = HostModel(model, run.lowered), np.arange(7, dtype=np.uint8)
    beyond, known = sentence.copy(), sentence.copy()
    beyond[[0, 3]], known[[0, 3]] = (255, last + 1), last
    expected = host.run(known).tobytes()
    with connect(QemuAddress("mps2-an386"), run.firmware("mps2-an386")) as device:
        assert device.classify(beyond.tobytes()) == device.classify(known.tobytes()) == expected
    assert host.run(beyond).tobytes() == expected


def test_the_hard_sentences_are_reported_on_their_own(compared):
    _, runs_dir = compared
    for row in rows_of(runs_dir):
        hard = row.subsets["hard"]
        assert 0 < hard.n < row.accuracy.n
        assert 0 <= hard.device <= 1
        assert hard.ci95[0] <= hard.device <= hard.ci95[1]
    results = read_results(runs_dir / "compare-first" / "results.json")
    tests = {one.subset: one for one in results.comparisons if one.type == "paired"}
    assert set(tests) == {None, "hard"}
    assert (tests["hard"].n, tests["hard"].n_groups) == (
        rows_of(runs_dir)[0].subsets["hard"].n,
        None,
    )
    metrics = {one.metric for one in results.comparisons if one.type == "seeds"}
    assert {"accuracy", "accuracy difference", "hard accuracy"} < metrics


def test_a_person_reads_of_sentences_and_not_of_clips(compared):
    ended, runs_dir = compared
    page = (runs_dir / "compare-first" / "report.html").read_text()
    shown = re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.S)
    assert "hard sentences" in shown
    assert not re.search(r"clip|speaker", shown + ended.err, flags=re.I)


def test_the_stages_are_those_of_every_task(compared):
    ended, runs_dir = compared
    run = runs_dir / "agreement-softmax-sentences-seed0-e2"
    for file in ("model.pt", "quantized.pt", "model.onnx", "golden_onnx.npz", "lowered/model.c"):
        assert (run / file).is_file()
    assert "read the sentences of sentences" in ended.err


def test_every_stage_finds_the_newest_run_whatever_its_task(compared, tmp_path, run_entrain):
    _, made = compared
    runs_dir = tmp_path / "runs"
    shutil.copytree(made, runs_dir, ignore=shutil.ignore_patterns("build"))
    name = "agreement-oscillator-relu-sentences-seed0-e2"
    for command, more in (
        ("quantize", ()),
        ("export", ()),
        ("build", ("--board", "mps3-an547")),
        ("flash", ("--board", "mps3-an547")),
    ):
        ended = run_entrain(command, "--runs-dir", runs_dir, "--json", *more)
        assert (ended.code, ended.value["run"]) == (0, name), ended.err


def test_trained_by_itself_it_says_of_what(sentences, run_entrain, tmp_path, own_cache):  # noqa: ARG001
    ended = run_entrain(
        *("train", "agreement", "--data-dir", sentences, "--attention", "relu-normalised"),
        *("--runs-dir", tmp_path, "--epochs", 1),
    )
    assert ended.code == 0, "what no device computes can be trained all the same"
    assert "% of the validation sentences" in ended.out
    ended = run_entrain("quantize", "--runs-dir", tmp_path)
    assert ended.code == 2
    assert "relu-normalised attention has no integer form" in ended.err


def test_data_of_another_kind_is_told_with_its_file(run_entrain, tmp_path):
    (tmp_path / "train.tsv").write_text("a table of another kind\n")
    ended = run_entrain("train", "agreement", "--data-dir", tmp_path, "--runs-dir", tmp_path / "r")
    assert ended.code == 2
    assert f"at: {tmp_path}/train.tsv:1" in ended.err
    assert not (tmp_path / "r").exists()
