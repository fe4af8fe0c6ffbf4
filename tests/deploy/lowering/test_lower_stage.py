"""The stage as a whole: a folder that is whole, or an error that names the layer."""

from __future__ import annotations

import hashlib
import re
from importlib.metadata import version

import numpy as np
import pytest

from entrain.deploy.errors import Mismatch, ModelError, UnsupportedOperator
from entrain.deploy.lowering.artifact import read_lowered
from entrain.deploy.lowering.host import HostModel
from entrain.deploy.lowering.stage import check_against_golden, lower

RANDOM = np.random.default_rng(2)


@pytest.fixture
def onnx(model, tmp_path):
    x = model.quantized(model.input(1, 6), 0.05, name="file")
    for name in ("hidden", "logits"):
        w = model.weights(RANDOM.integers(-127, 128, (6, 6)), 0.01)
        x = model.quantized(model.node("MatMul", x, w), 0.08, name=f"/{name}/act_quant/q")
    model.output(x)
    return model.save(tmp_path / "small.onnx")


@pytest.fixture
def lowered(onnx, tmp_path):
    folder = tmp_path / "lowered"
    return lower(onnx, folder, task="kws01", name="small"), folder


def test_the_folder_holds_what_the_design_says(lowered):
    model, folder = lowered
    files = {path.name for path in folder.iterdir()}
    assert files == {
        *("model.c", "model.h", "weights.c", "weights.h", "schedule.h"),
        *("layers.json", "schedule.json", "golden.npz"),
    }
    assert read_lowered(folder) == model
    assert [layer.name for layer in model.layers] == ["hidden", "logits"]
    assert model.layers[0].onnx_outputs == ("/hidden/act_quant/q",)
    assert 0 <= model.layers[0].offset < model.arena_bytes
    assert model.layers[1].offset is None
    assert model.macs == 72


def test_the_header_says_what_the_firmware_must_know(lowered):
    model, folder = lowered
    text = (folder / "model.h").read_text()
    for line in (
        '#define MODEL_NAME "small"',
        '#define MODEL_TASK "kws01"',
        "#define MODEL_INPUT_BYTES 6u",
        "#define MODEL_OUTPUT_COUNT 6u",
        "#define MODEL_OUTPUT_SCALE 0.0799999982f",
        "#define MODEL_OUTPUT_ZERO_POINT (0)",
        f"#define MODEL_ARENA_BYTES {model.arena_bytes}u",
        "#define MODEL_LAYER_COUNT 2u",
        "#define MODEL_MACS 72u",
    ):
        assert line in text


def test_the_header_names_the_file_that_it_was_made_from(onnx, lowered):
    digest = hashlib.sha256(onnx.read_bytes()).hexdigest()
    _, origin, file_hash, *_ = (lowered[1] / "model.h").read_text().splitlines()
    assert origin == f" * By entrain-edge {version('entrain-edge')}, from small.onnx"
    assert file_hash == f" * SHA-256 {digest}"


def test_the_golden_integers_are_those_of_the_c(lowered):
    model, folder = lowered
    with np.load(folder / "golden.npz") as golden:
        assert set(golden) == {model.input.name, "hidden", "logits"}
        host = HostModel(model, folder)
        for given, expected in zip(golden[model.input.name], golden["logits"], strict=True):
            np.testing.assert_array_equal(host.run(given), expected)


def test_golden_inputs_may_be_given(onnx, tmp_path):
    features = RANDOM.normal(size=(3, 1, 6)).astype("float32")
    model = lower(onnx, tmp_path / "l", task="kws01", name="small", features=features)
    with np.load(tmp_path / "l" / "golden.npz") as golden:
        steps = np.clip(np.rint(features / np.float32(0.05)), -128, 127)
        np.testing.assert_array_equal(golden[model.input.name], steps)


def test_one_changed_weight_is_found_and_its_layer_named(lowered):
    model, folder = lowered
    weights = folder / "weights.c"
    text = weights.read_text()
    place = re.search(r"logits_weights\[\d+\] = \{\n +(-?\d+),", text)
    start, end = place.span(1)
    weights.write_text(f"{text[:start]}{-int(place[1]) // 2 + 3}{text[end:]}")
    with np.load(folder / "golden.npz") as golden, pytest.raises(Mismatch) as caught:
        check_against_golden(model, folder, dict(golden))
    assert "layer logits" in caught.value.what
    assert str(folder) in caught.value.where


def test_a_failure_leaves_what_was_lowered_before_as_it_was(onnx, tmp_path, monkeypatch):
    folder = tmp_path / "lowered"
    lower(onnx, folder, task="kws01", name="small")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr("entrain.deploy.lowering.host.KERNELS", tmp_path / "nowhere")
    with pytest.raises(Exception, match="compiler refuses"):
        lower(onnx, folder, task="kws01", name="small")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_model_that_cannot_be_lowered_leaves_the_old_folder(onnx, model, tmp_path):
    folder = tmp_path / "lowered"
    before = lower(onnx, folder, task="kws01", name="small")
    model.nodes[-3].op_type = "Mod"
    with pytest.raises(UnsupportedOperator):
        lower(model.save(tmp_path / "other.onnx"), folder, task="kws01", name="small")
    assert read_lowered(folder) == before


@pytest.mark.parametrize("damage", ["{", "{}", '{"name": 3}'])
def test_a_damaged_layers_json_is_reported(lowered, damage):
    _, folder = lowered
    (folder / "layers.json").write_text(damage)
    with pytest.raises(ModelError, match="damaged"):
        read_lowered(folder)
