"""Which stages are due, what a stage refuses, and what an interrupted one leaves."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager

import pytest

from entrain.deploy import pipeline
from entrain.deploy.errors import CheckpointError, ModelError, UsageError
from entrain.deploy.pipeline import IMPORTED, STAGES, complete, redo
from entrain.deploy.recipe import open_run, read_recipe
from entrain.deploy.runs import Run, create_run
from entrain.deploy.tasks import TASKS
from entrain.deploy.tasks.keyword import KeywordRecipe


class Listener:
    """Writes down the stages; may interrupt one of them after some steps."""

    def __init__(self, interrupt: str = "", after: int = 0) -> None:
        self.stages: list[str] = []
        self._interrupt, self._after = interrupt, after

    @contextmanager
    def stage(self, _run, name, _steps):
        self.stages.append(name)
        taken = []

        def step(_remark):
            taken.append(name)
            if name == self._interrupt and len(taken) == self._after:
                raise KeyboardInterrupt

        yield step


def data_of(run):
    return lambda: TASKS["keyword"].load(read_recipe(run))


def no_data():
    raise AssertionError("this stage needs no data")


def touch(path, age):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    os.utime(path, ns=(0, 10**18 - age))


@pytest.fixture
def made(tmp_path):
    """A run whose files were made one after the other."""
    run = create_run(tmp_path, "made", {"task": "keyword"})
    files = (run.checkpoint, run.quantized_checkpoint, run.onnx, run.golden_onnx)
    for age, path in enumerate([*files, run.lowered / "layers.json"]):
        touch(path, 1000 - age)
    return run


def due(run):
    return [name for name, stage in STAGES["keyword"].items() if stage.is_due(run)]


def test_nothing_is_due_of_a_whole_run(made):
    assert due(made) == []


def test_files_of_one_instant_are_not_out_of_date(made):
    for path in (made.checkpoint, made.quantized_checkpoint, made.onnx, made.golden_onnx):
        touch(path, 5)
    touch(made.lowered / "layers.json", 5)
    assert due(made) == []


@pytest.mark.parametrize(
    ("attribute", "stage"),
    [
        ("checkpoint", "train"),
        ("quantized_checkpoint", "quantize"),
        ("onnx", "export"),
        ("golden_onnx", "export"),
    ],
)
def test_what_is_missing_is_due(made, attribute, stage):
    getattr(made, attribute).unlink()
    assert due(made) == [stage]


@pytest.mark.parametrize(
    ("attribute", "stage"),
    [("checkpoint", "quantize"), ("quantized_checkpoint", "export"), ("onnx", "lower")],
)
def test_what_is_older_than_its_source_is_due(made, attribute, stage):
    touch(getattr(made, attribute), 0)
    assert due(made) == [stage]


def test_a_newer_onnx_is_lowered_again_and_nothing_else_is_done(road):
    run, listener = road.run("softmax"), Listener()
    complete(run, no_data, listener)
    assert listener.stages == []
    os.utime(run.onnx)
    complete(run, no_data, listener)
    assert listener.stages == ["lower"]


def test_one_changed_checkpoint_makes_all_that_follows_due(road):
    run, listener = road.run("softmax"), Listener()
    os.utime(run.checkpoint)
    complete(run, data_of(run), listener)
    assert listener.stages == ["quantize", "export", "lower"]
    assert due(run) == []


def test_a_stage_asked_for_is_done_though_not_due(road):
    run, listener = road.run("softmax"), Listener()
    redo(run, no_data, listener, "lower")
    assert listener.stages == ["lower"]


def test_a_run_has_the_stages_of_its_task(tmp_path):
    run = create_run(tmp_path, "theirs", {"task": IMPORTED})
    with pytest.raises(UsageError, match="no stage 'export'") as caught:
        redo(run, no_data, Listener(), "export")
    assert "lower" in caught.value.remedy


def test_an_unknown_task_is_told_with_its_file(tmp_path):
    run = create_run(tmp_path, "odd", {"task": "tea"})
    with pytest.raises(UsageError, match="no task 'tea'") as caught:
        complete(run, no_data, Listener())
    assert caught.value.where == str(run.config)


def new_run(road, epochs):
    recipe = KeywordRecipe("uniform", data=str(road.data), epochs=epochs)
    run = open_run(road.runs_dir, recipe)
    return run, data_of(run)


def test_an_interrupted_training_keeps_the_best_so_far(road):
    run, load = new_run(road, epochs=5)
    with pytest.raises(KeyboardInterrupt):
        pipeline.train(run, load, Listener("train", after=2))
    assert pipeline.trained_network(run).epochs == 2
    listener = Listener()
    complete(run, load, listener)
    assert listener.stages == ["quantize", "export", "lower"]


def test_an_interrupted_training_does_not_replace_a_longer_one(road):
    run, load = new_run(road, epochs=3)
    pipeline.train(run, load, Listener())
    whole = run.checkpoint.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        pipeline.train(run, load, Listener("train", after=2))
    assert run.checkpoint.read_bytes() == whole


def test_an_interrupted_quantization_leaves_the_earlier_one(road):
    run = road.run("softmax")
    before = run.quantized_checkpoint.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        pipeline.quantize(run, data_of(run), Listener("quantize", after=1))
    assert run.quantized_checkpoint.read_bytes() == before


def test_the_checkpoint_of_another_network_is_refused(road):
    run = road.run("softmax")
    shutil.copy(road.run("oscillator-separable").checkpoint, run.checkpoint)
    with pytest.raises(
        CheckpointError, match="oscillator-separable attention; the run's is softmax"
    ):
        complete(run, data_of(run), Listener())


@pytest.mark.parametrize("keep", [0, 1000])
def test_a_damaged_checkpoint_is_refused_with_its_path(road, keep):
    run = road.run("softmax")
    run.checkpoint.write_bytes(run.checkpoint.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="damaged") as caught:
        complete(run, no_data, Listener())
    assert caught.value.where == str(run.checkpoint)


def test_data_of_other_words_is_refused(road):
    run = road.run("softmax")
    data = data_of(run)()
    other = type(data)(
        ("high", "low", "odd"),
        *(getattr(data, name) for name in ("train", "validation", "test", "background", "source")),
    )
    with pytest.raises(CheckpointError, match="knows high, low, mid; the data has high, low, odd"):
        pipeline.quantize(run, lambda: other, Listener())


def test_damaged_golden_values_are_told(road):
    run = road.run("softmax")
    run.golden_onnx.write_bytes(b"PK no zip")
    with pytest.raises(ModelError, match="golden values cannot be read") as caught:
        redo(run, no_data, Listener(), "lower")
    assert caught.value.where == str(run.golden_onnx)


def test_a_full_disk_is_told_and_leaves_no_half_file(road, monkeypatch):
    from pathlib import Path

    run, load = new_run(road, epochs=1)

    def full(_path, _data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UsageError, match="No space left on device") as caught:
        pipeline.train(run, load, Listener())
    assert caught.value.where == str(run.checkpoint)
    assert not [path for path in run.folder.iterdir() if path.name != "config.toml"]


def test_lowered_c_of_another_version_says_how_to_renew_it(road):
    from entrain.deploy.boards import find_board
    from entrain.deploy.errors import ToolError

    run = road.run("softmax")
    model = run.lowered / "model.c"
    model.write_text(model.read_text() + "\nint stale = unknown;\n")
    with pytest.raises(ToolError) as caught:
        pipeline.build(run, find_board("mps2-an386"), Listener())
    assert caught.value.where == "mps2-an386"
    assert f"entrain lower --run {run.name}" in caught.value.remedy


def test_a_run_that_is_not_there_has_no_task(tmp_path):
    with pytest.raises(UsageError) as caught:
        complete(Run(tmp_path / "nowhere"), no_data, Listener())
    assert caught.value.remedy
