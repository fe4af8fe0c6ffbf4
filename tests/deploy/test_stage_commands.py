"""One stage a command: train, quantize, export, lower, build, flash."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from entrain.deploy.cli import stages as stage_helpers
from entrain.deploy.cli.progress import Work
from entrain.deploy.cli.sheet import ELLIPSIS
from entrain.deploy.device.emulated_flash import emulated_flash, flashed_image
from entrain.deploy.runs import Run
from entrain.deploy.tasks.keyword import KeywordRecipe


@pytest.fixture
def onnx_file(walked, tmp_path):
    """A QCDQ ONNX file that belongs to no run."""
    path = tmp_path / "theirs.onnx"
    shutil.copy(walked.run("oscillator-separable").onnx, path)
    return path


def changed(path, change):
    import onnx

    model = onnx.load(path)
    change(model)
    onnx.save(model, path)


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (shutil.rmtree, "there is no such data folder"),
        (lambda data: [shutil.rmtree(data / word) for word in ("high", "low", "mid")], "no clips"),
        (lambda data: [path.unlink() for path in data.glob("*.txt")], "the list of the"),
        (
            lambda data: (data / "low" / "training0_nohash_0.wav").write_bytes(b"?"),
            "no sound that can be read",
        ),
        (lambda data: os.truncate(data / "low" / "training0_nohash_0.wav", 9000), "cut short"),
    ],
    ids=["missing", "wordless", "no lists", "no sound", "cut short"],
)
def test_unusable_data_is_told_with_its_place_and_makes_no_run(
    entrain_here, tones, tmp_path, break_it, said
):
    data = tmp_path / "broken"
    shutil.copytree(tones, data)
    break_it(data)
    ended = entrain_here("train", "keyword", "--data-dir", data, "--epochs", 1)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert f"at: {data}" in ended.err
    assert "try: " in ended.err
    assert not (tmp_path / "runs").exists()


def test_another_recipe_under_a_name_is_refused(entrain_here, tones):
    asked = ["train", "--data-dir", tones, "--attention", "uniform", "--name", "mine"]
    assert entrain_here(*asked, "--epochs", 1).code == 0
    ended = entrain_here(*asked, "--epochs", 2)
    assert ended.code == 2
    assert "another recipe: epochs 1, not 2" in ended.err
    assert "at: runs/mine/config.toml" in ended.err


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_training_keeps_the_best_and_compare_goes_on(road, entrain_here, monkeypatch):
    step = Work.step

    def interrupted(self, remark):
        step(self, remark)
        if self._what == "train" and self._done == 2:
            os.kill(os.getpid(), signal.SIGINT)

    asked = ["--data-dir", road.data, "--runs-dir", road.runs_dir, "--attention", "uniform"]
    with monkeypatch.context() as patch:
        patch.setattr(Work, "step", interrupted)
        ended = entrain_here("train", "keyword", *asked, "--epochs", 9)
    assert ended.code == 130
    assert "train stopped, 2/9 in " in ended.err
    assert ended.err.endswith("interrupted\n")
    ended = entrain_here("compare", *asked, "--epochs", 9, "--samples", 2, "--json")
    assert ended.code == 0
    assert "was interrupted after 2 of 9 epochs; remove" in ended.err
    assert "train" not in ended.stages
    assert len(ended.value) == 1


def test_quantize_and_export_do_their_stage_again(road, entrain_here):
    run = road.run("softmax")
    where = ["--run", run.name, "--runs-dir", road.runs_dir, "--json"]
    ended = entrain_here("quantize", *where)
    assert (ended.code, ended.stages) == (0, ["quantize"])
    assert ended.value == {"run": run.name, "quantized": str(run.quantized_checkpoint)}
    ended = entrain_here("export", *where)
    assert (ended.code, ended.stages) == (0, ["export"])
    assert ended.value["onnx"] == str(run.onnx)


def test_without_any_run_the_small_default_is_trained_first_and_said(
    entrain_here, tones, monkeypatch
):
    small = KeywordRecipe("softmax", data=str(tones), epochs=1)  # synthetic speech takes minutes
    monkeypatch.setattr(stage_helpers, "small_default", lambda: small)
    ended = entrain_here("export", "--json")
    assert ended.code == 0
    assert "There is no trained model yet: training the small default first." in ended.err
    assert ended.stages == ["train", "quantize", "export"]
    assert ended.value["run"] == small.run_name
    again = entrain_here("quantize")
    assert again.stages == ["quantize"]
    assert "small default" not in again.err


@pytest.mark.parametrize("command", ["quantize", "export", "lower", "check", "build", "flash"])
def test_a_run_that_is_not_there_is_told_with_those_that_are(road, entrain_here, command):
    ended = entrain_here(command, "--run", "nope", "--runs-dir", road.runs_dir)
    assert (ended.code, ended.out) == (2, "")
    assert "error: there is no run 'nope'" in ended.err
    assert road.run("softmax").name in ended.err


@pytest.mark.parametrize("command", ["check", "build", "flash"])
def test_an_unknown_board_is_told_with_those_there_are(entrain_here, command):
    ended = entrain_here(command, "--board", "nope")
    assert ended.code == 2
    assert (
        "at: --board\n  try: boards that exist: mps2-an385, mps2-an385-m0, mps2-an386" in ended.err
    )


def test_anyones_model_is_lowered_built_and_flashed(entrain_here, onnx_file):
    ended = entrain_here("lower", onnx_file, "--json")
    assert ended.code == 0, ended.err
    assert (ended.value["name"], ended.value["task"]) == ("theirs", "onnx")
    assert len(ended.value["layers"]) > 5
    compared = ended.value["onnxruntime"]
    assert 0 <= compared["differing"] <= 0.1 * compared["elements"]
    assert f"of {compared['elements']} numbers that it puts out" in ended.err.replace("All", "of")
    built = entrain_here("build", "--run", "theirs", "--board", "mps3-an547", "--json")
    assert built.code == 0
    assert 0 < built.value["ram_bytes"] < built.value["flash_bytes"]
    assert entrain_here("flash", "--run", "theirs", "--board", "mps2-an386").code == 0
    image = flashed_image("mps2-an386").read_bytes()
    assert b"theirs" in image
    assert image == Run(onnx_file.parent / "runs" / "theirs").firmware("mps2-an386").read_bytes()


def test_an_image_that_does_not_start_is_not_flashed(road, entrain_here, monkeypatch):
    run = road.run("softmax")
    where = ["--run", run.name, "--runs-dir", road.runs_dir]
    assert entrain_here("flash", *where).code == 0
    before = emulated_flash("mps2-an386").read_bytes()
    monkeypatch.setenv("PATH", "/nowhere")
    ended = entrain_here("flash", *where)
    assert ended.code == 2
    assert "not installed" in ended.err
    assert emulated_flash("mps2-an386").read_bytes() == before


def test_an_unknown_operator_is_named_with_its_node(entrain_here, onnx_file, tmp_path):
    def swap(model):
        node = next(node for node in model.graph.node if node.op_type == "ReduceMean")
        node.op_type, node.name = "Acosh", "/odd/Acosh"
        del node.attribute[:]
        del node.input[1:]

    changed(onnx_file, swap)
    ended = entrain_here("lower", onnx_file)
    assert (ended.code, ended.out) == (2, "")
    assert "error: operator Acosh of node /odd/Acosh has no integer form here" in ended.err
    assert f"at: {onnx_file}" in ended.err
    assert "try: supported operators: " in ended.err
    assert not (tmp_path / "runs").exists()


def test_what_is_no_onnx_is_told(entrain_here, tmp_path):
    ended = entrain_here("lower", "nowhere.onnx")
    assert (ended.code, "there is no such ONNX file" in ended.err) == (2, True)
    (tmp_path / "text.onnx").write_text("hello")
    ended = entrain_here("lower", "text.onnx")
    assert (ended.code, "not a valid ONNX model" in ended.err) == (2, True)
    assert "5 bytes of text, which begin with 'hello'" in ended.err
    assert not (tmp_path / "runs").exists()


def test_anyones_model_is_lowered_once_and_in_date(entrain_here, onnx_file, tmp_path, monkeypatch):
    from entrain.deploy.lowering import stage
    from entrain.deploy.pipeline import LOWER

    lowered = []
    lower_file = stage.lower

    def counted(onnx, *arguments, **more):
        lowered.append(onnx)
        return lower_file(onnx, *arguments, **more)

    monkeypatch.setattr(stage, "lower", counted)
    ended = entrain_here("lower", onnx_file)
    assert ended.code == 0, ended.err
    assert lowered == [onnx_file]
    assert ended.err.count("theirs: lower, ") == 1
    head = ended.out.splitlines()[0]
    assert head.split() == ["layer", "does", "shape", "type", "MACs", "offset"]
    assert ELLIPSIS not in ended.out, "a pipe is as wide as it needs to be"
    run = Run(tmp_path / "runs" / "theirs")
    assert not LOWER.is_due(run)
    files = {path.name for path in run.folder.iterdir()}
    assert files == {"config.toml", "log.txt", "lowered", "model.onnx"}
    assert entrain_here("lower", onnx_file, "--json").err.count("theirs: lower, ") == 1


@pytest.mark.parametrize("there_was_one", [False, True])
def test_a_model_whose_c_is_wrong_leaves_the_run_as_it_was(
    entrain_here, onnx_file, tmp_path, monkeypatch, there_was_one
):
    from entrain.deploy.errors import Mismatch
    from entrain.deploy.lowering import stage

    run = Run(tmp_path / "runs" / "theirs")
    if there_was_one:
        assert entrain_here("lower", onnx_file).code == 0
    before = contents(run.folder)

    def differs(*_arguments):
        raise Mismatch("a layer differs")

    monkeypatch.setattr(stage, "check_against_golden", differs)
    other = renamed(onnx_file, tmp_path / "elsewhere")
    assert entrain_here("lower", other, "--run", "theirs").code == 1
    assert contents(run.folder) == before
    assert (tmp_path / "runs").exists() == there_was_one


def contents(folder):
    """Every file below a folder, but for the log."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "log.txt"]
    return {path: path.read_bytes() for path in files}


def test_of_an_imported_run_a_report_says_what_there_is(entrain_here, onnx_file):
    assert entrain_here("lower", onnx_file).code == 0
    for named in ("theirs", "runs/theirs"):
        ended = entrain_here("report", named)
        assert (ended.code, ended.out) == (2, "")
        assert "the run theirs holds an imported ONNX file" in ended.err
        assert "entrain profile --run theirs" in ended.err
        assert "entrain validate --run theirs" in ended.err
        assert "entrain compare" not in ended.err


def outside(model, location, folder):
    """The model with its weights in a file of their own, said to lie at ``location``."""
    import onnx

    onnx.save_model(
        *(model, folder / "external.onnx"),
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    bare = onnx.load(folder / "external.onnx", load_external_data=False)
    for tensor in bare.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
    (folder / "external.onnx").write_bytes(bare.SerializeToString())
    return folder / "external.onnx"


def test_weights_in_a_file_beside_the_model_are_taken_along(entrain_here, onnx_file, tmp_path):
    import onnx

    folder = tmp_path / "folder"
    folder.mkdir()
    path = outside(onnx.load(onnx_file), "weights.bin", folder)
    assert entrain_here("lower", path).code == 0
    shutil.rmtree(folder)
    assert entrain_here("lower", "--run", "external").code == 0


def test_weights_outside_the_models_folder_are_refused(entrain_here, onnx_file, tmp_path):
    import onnx

    folder = tmp_path / "folder"
    folder.mkdir()
    path = outside(onnx.load(onnx_file), "../weights.bin", folder)
    shutil.copy(folder / "weights.bin", tmp_path / "weights.bin")
    ended = entrain_here("lower", path)
    assert ended.code == 2
    assert "points outside the directory" in ended.err
    assert not (tmp_path / "runs").exists()


def test_a_models_name_that_is_no_runs_name_needs_another(entrain_here, onnx_file):
    odd = onnx_file.rename(onnx_file.with_name("their model.onnx"))
    ended = entrain_here("lower", odd)
    assert (ended.code, "at: --run" in ended.err) == (2, True)


def renamed(onnx_file, folder):
    """Another model in a file of the same name."""
    folder.mkdir()
    other = folder / onnx_file.name
    shutil.copy(onnx_file, other)
    changed(other, lambda model: setattr(model, "producer_name", "somebody else"))
    return other


def test_another_model_of_the_same_name_replaces_a_run_only_if_it_is_named(
    entrain_here, onnx_file, tmp_path
):
    run = Run(tmp_path / "runs" / "theirs")
    assert entrain_here("lower", onnx_file).code == 0
    assert entrain_here("lower", onnx_file).code == 0, "the same file again is no replacement"
    before = run.onnx.read_bytes()
    other = renamed(onnx_file, tmp_path / "elsewhere")
    ended = entrain_here("lower", other)
    assert (ended.code, run.onnx.read_bytes() == before) == (2, True)
    assert "error: the run theirs holds another model" in ended.err
    assert "try: choose another name with --run, or replace it with --run theirs" in ended.err
    ended = entrain_here("lower", other, "--run", "theirs")
    assert (ended.code, run.onnx.read_bytes() == before) == (0, False)
    assert "theirs held another model, which this one replaces" in ended.err


def test_a_trained_run_is_not_overwritten_by_anyones_model(road, entrain_here, onnx_file):
    run = road.run("softmax")
    before = run.onnx.read_bytes()
    ended = entrain_here("lower", onnx_file, "--run", run.name, "--runs-dir", road.runs_dir)
    assert ended.code == 2
    assert "holds a network that is trained here" in ended.err
    assert run.onnx.read_bytes() == before
