"""A run's recipe: its name, where it stands, and what is no recipe."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.errors import UsageError
from entrain.deploy.recipe import KeywordRecipe, data_place, open_run, read_recipe
from entrain.deploy.runs import Run, checked_name

recipes = st.builds(
    KeywordRecipe,
    attention=st.sampled_from(["softmax", "uniform", "oscillator-relu", "oscillator-relu-d4-p1.5"]),
    seed=st.integers(0, 99),
    data=st.sampled_from(["synthetic", "/data/speech", "/data/words"]),
    standard_12=st.booleans(),
    epochs=st.integers(1, 200),
    quantization_epochs=st.integers(0, 9),
)


@given(recipes, recipes)
def test_recipes_that_differ_get_names_that_differ(one, other):
    assert (one.run_name == other.run_name) == (one == other)


@given(recipes)
def test_every_recipes_name_is_a_folders_name(recipe):
    assert checked_name(recipe.run_name) == recipe.run_name


def test_usual_lengths_are_not_part_of_the_name():
    assert KeywordRecipe("softmax", 1, "/data/speech").run_name == "keyword-softmax-speech-seed1"
    assert KeywordRecipe("softmax", 1, epochs=20).run_name == "keyword-softmax-synthetic-seed1"
    assert KeywordRecipe("softmax", 1, epochs=80).run_name.endswith("-e80")


def test_a_run_keeps_its_recipe_and_is_taken_up_again(tmp_path):
    recipe = KeywordRecipe("oscillator-relu", 3, "/data/speech", epochs=7)
    run = open_run(tmp_path, recipe)
    run.checkpoint.write_bytes(b"weights")
    assert read_recipe(run) == recipe
    assert open_run(tmp_path, recipe).checkpoint.read_bytes() == b"weights"


def test_another_recipe_under_the_same_name_is_refused_and_changes_nothing(tmp_path):
    run = open_run(tmp_path, KeywordRecipe("softmax", epochs=20), "mine")
    before = run.config.read_bytes()
    with pytest.raises(UsageError, match="epochs 20, not 30") as caught:
        open_run(tmp_path, KeywordRecipe("softmax", epochs=30), "mine")
    assert "another --name" in caught.value.remedy
    assert run.config.read_bytes() == before


def test_data_is_the_same_from_every_working_directory(tmp_path, monkeypatch):
    (tmp_path / "speech").mkdir()
    monkeypatch.chdir(tmp_path)
    here = data_place(Path("speech"))
    monkeypatch.chdir(tmp_path / "speech")
    assert here == data_place(Path("../speech")) == str(tmp_path / "speech")


def test_a_folder_called_synthetic_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert data_place(Path("./synthetic")) == str(tmp_path / "synthetic")
    assert data_place("synthetic") == "synthetic"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('task = "agreement"\n', "the run's task is 'agreement'"),
        ('task = "keyword"\n', "attention: "),
        ('task = "keyword"\nattention = "softmax"\nepochs = "many"\n', "epochs: "),
        ("task = ", "not TOML"),
    ],
)
def test_a_config_that_is_no_recipe_is_told_with_file_and_remedy(tmp_path, text, said):
    run = Run(tmp_path / "mine")
    run.folder.mkdir()
    run.config.write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        read_recipe(run)
    assert caught.value.where.startswith(str(run.config))
    assert caught.value.remedy


def test_synthetic_speech_has_no_standard_twelve():
    with pytest.raises(UsageError, match="standard twelve") as caught:
        KeywordRecipe("softmax", standard_12=True).load_data()
    assert caught.value.where == "--standard-12"
