"""Looking into a model on a board: where its instructions go, and which layer differs first."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from entrain.deploy.arrays import write_arrays
from entrain.deploy.boards import find_board
from entrain.deploy.device.counting import InstructionCounts
from entrain.deploy.lowering.artifact import read_lowered
from entrain.deploy.profiling import profile_of

RUN = "keyword-softmax-tones-seed0-e1"


@pytest.fixture(scope="module")
def profiled(walked, run_entrain):
    return run_entrain("profile", "--run", RUN, "--runs-dir", walked.runs_dir, "--json")


def test_a_profile_names_every_layer_and_loses_no_instruction(profiled, walked):
    assert profiled.code == 0, profiled.err
    found = profiled.value
    model = read_lowered(walked.run("softmax").lowered)
    assert [layer["name"] for layer in found["layers"]] == [layer.name for layer in model.layers]
    counted = sum(layer["instructions"] for layer in found["layers"])
    assert counted + found["overhead"] + found["library"] == found["instructions"]
    assert sum(layer["macs"] for layer in found["layers"]) == model.macs


def test_no_layer_beats_the_bound_of_its_core(profiled):
    bounded = [layer for layer in profiled.value["layers"] if layer["bound"] is not None]
    assert bounded
    assert all(layer["instructions"] > layer["bound"] for layer in bounded)


def test_the_attention_core_is_the_layer_between_projections_and_context(profiled):
    found = profiled.value
    cores = [layer for layer in found["layers"] if layer["attention"]]
    assert [layer["op"] for layer in cores] == ["softmax attention"]
    assert found["core_instructions"] == cores[0]["instructions"]
    rest = found["instructions"] - found["core_instructions"]
    assert found["amdahl_bound"] == pytest.approx(found["instructions"] / rest)


def test_every_layer_has_modelled_cycles_with_bounds_and_they_add_up(profiled):
    found = profiled.value
    for layer in found["layers"]:
        cycles = layer["cycles"]
        assert cycles["kind"] == "modelled"
        assert cycles["low"] <= cycles["value"] <= cycles["high"]
    outside = found["overhead"] + found["library"]
    modelled = sum(layer["cycles"]["value"] for layer in found["layers"])
    per_instruction = found["cycles"]["value"] / found["instructions"]
    assert modelled + outside * per_instruction == pytest.approx(found["cycles"]["value"])


@pytest.mark.parametrize(
    ("board", "at_once"), [("mps2-an385", 1), ("mps2-an386", 2), ("mps3-an547", 16)]
)
def test_the_bound_is_what_one_instruction_multiplies(walked, board, at_once):
    model = read_lowered(walked.run("softmax").lowered)
    profile = profile_of(model, find_board(board), InstructionCounts(0, {}))
    for layer in profile.layers:
        assert layer.bound == (round(layer.macs / at_once) if layer.macs else None)


def test_the_device_computes_the_golden_integers_in_every_layer(walked, entrain_here):
    ended = entrain_here(
        "validate", "--layers", "--run", RUN, "--runs-dir", walked.runs_dir, "--json"
    )
    assert ended.code == 0, ended.err
    model = read_lowered(walked.run("softmax").lowered)
    assert [layer["name"] for layer in ended.value["layers"]] == [one.name for one in model.layers]
    assert ended.value["first_divergence"] is None
    assert all(layer["differing"] == 0 for layer in ended.value["layers"])
    assert all(layer["elements"] > 0 for layer in ended.value["layers"])
    assert 0 < ended.value["stack"]["used"] < ended.value["stack"]["reserved"]


def test_the_first_layer_that_differs_is_named(road, entrain_here):
    run = road.run("softmax")
    path = run.lowered / "golden.npz"
    golden = dict(np.load(path))
    model = read_lowered(run.lowered)
    for name in (model.layers[3].name, model.layers[5].name):
        golden[name].flat[0] ^= 2
    write_arrays(path, golden)
    ended = entrain_here(
        "validate", "--layers", "--run", RUN, "--runs-dir", road.runs_dir, "--json"
    )
    assert ended.code == 1
    assert ended.value["first_divergence"] == model.layers[3].name
    assert (
        f"1 of {golden[model.layers[3].name].size} elements of {model.layers[3].name}" in ended.err
    )
    assert "by 2 steps at most" in ended.err
    assert f"at: {RUN} on qemu:mps2-an386" in ended.err
    assert "--layers" not in ended.err
    assert "flash this" not in ended.err
    zeros = [0] * len(model.layers[3].shape)
    assert f"the first is {zeros} of golden input 0" in ended.err
    (diverging,) = (one for one in ended.value["layers"] if one["name"] == model.layers[3].name)
    assert diverging["first"] == {"inference": 0, "element": zeros}


def test_an_output_that_differs_on_an_emulator_is_no_matter_of_flashing(road, entrain_here):
    run = road.run("softmax")
    path = run.lowered / "golden.npz"
    golden = dict(np.load(path))
    golden[read_lowered(run.lowered).output.name].flat[0] ^= 2
    write_arrays(path, golden)
    ended = entrain_here("validate", "--run", RUN, "--runs-dir", road.runs_dir)
    assert ended.code == 1
    assert f"at: {RUN} on qemu:mps2-an386" in ended.err
    assert "--layers names the first layer" in " ".join(ended.err.split())
    assert ended.out.endswith("1 of 1 output not equal on 8 inputs\n")
    assert "flash this" not in ended.err


def test_a_person_is_told_the_verdict_over_all_layers(walked, entrain_here):
    ended = entrain_here("validate", "--layers", "--run", RUN, "--runs-dir", walked.runs_dir)
    model = read_lowered(walked.run("softmax").lowered)
    lines = ended.out.splitlines()
    assert lines[-1] == f"all {len(model.layers)} layers equal on 8 inputs"
    assert [line.split()[0] for line in lines[1:-1]] == [layer.name for layer in model.layers]


def test_outputs_alone_need_no_trace_build(road, entrain_here):
    ended = entrain_here("validate", "--run", RUN, "--runs-dir", road.runs_dir)
    assert ended.code == 0, ended.err
    assert "logits" in ended.out
    assert ended.out.endswith("the output equal on 8 inputs\n")
    assert "trace" not in ended.err


def test_golden_integers_of_another_model_are_told(road, entrain_here):
    path = road.run("softmax").lowered / "golden.npz"
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w"):
        pass
    path.write_bytes(empty.getvalue())
    ended = entrain_here("validate", "--run", RUN, "--runs-dir", road.runs_dir)
    assert ended.code == 2
    assert "no golden integers of" in ended.err
    assert f"at: {path}" in ended.err
