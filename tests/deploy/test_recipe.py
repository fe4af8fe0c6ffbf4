"""A run's recipe: its name, where it stands, and what is no recipe."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.errors import UsageError
from entrain.deploy.recipe import open_run, read_recipe
from entrain.deploy.runs import Run, checked_name
from entrain.deploy.tasks import TASKS, Choices
from entrain.deploy.tasks.agreement import AgreementRecipe
from entrain.deploy.tasks.keyword import KeywordRecipe
from entrain.deploy.tasks.keyword_linear import KeywordLinearRecipe

COMMON = {
    "attention": st.sampled_from(
        ["softmax", "uniform", "oscillator-relu", "oscillator-relu-d4-p1.5"]
    ),
    "seed": st.integers(0, 99),
    "data": st.sampled_from(["", "/data/speech", "/data/words"]),
    "epochs": st.integers(1, 200),
    "quantization_epochs": st.integers(0, 9),
}
recipes = st.one_of(
    st.builds(KeywordRecipe, standard_12=st.booleans(), **COMMON),
    st.builds(KeywordLinearRecipe, standard_12=st.booleans(), **COMMON),
    st.builds(AgreementRecipe, **COMMON),
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


def test_both_keyword_networks_are_trained_as_long():
    for data in ("", "/data/speech"):
        lengths = {
            kind("softmax", data=data).epochs for kind in (KeywordRecipe, KeywordLinearRecipe)
        }
        assert len(lengths) == 1
    made = KeywordLinearRecipe("softmax", 1, "/data/speech")
    assert made.run_name == "keyword-linear-softmax-speech-seed1"


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
    here = KeywordRecipe.place(Path("speech"))
    monkeypatch.chdir(tmp_path / "speech")
    assert here == KeywordRecipe.place(Path("../speech")) == str(tmp_path / "speech")


def test_a_folder_called_as_what_is_built_in_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert KeywordRecipe.place(Path("./synthetic")) == str(tmp_path / "synthetic")
    assert KeywordRecipe.place("synthetic") == "synthetic"
    assert AgreementRecipe.place("templates") == "templates"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('task = "tea"\n', "the run's task is 'tea', and what is trained here is one of: keyword"),
        ("seed = 1\n", "the run's task is None"),
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
        TASKS["keyword"].load(KeywordRecipe("softmax", standard_12=True))
    assert caught.value.where == "--standard-12"


def test_a_run_of_another_task_under_the_same_name_is_refused(tmp_path):
    open_run(tmp_path, KeywordRecipe("softmax"), "mine")
    with pytest.raises(UsageError, match="task keyword, not agreement"):
        open_run(tmp_path, AgreementRecipe("softmax"), "mine")
    with pytest.raises(UsageError, match="task keyword, not keyword-linear"):
        open_run(tmp_path, KeywordLinearRecipe("softmax"), "mine")


def test_a_task_makes_its_recipe_of_what_the_command_line_says(tmp_path):
    keyword, agreement = TASKS["keyword"], TASKS["agreement"]
    asked = Choices(data_dir=tmp_path, epochs=3, standard_12=True)
    made = keyword.recipe("softmax", 2, asked)
    assert made == KeywordRecipe("softmax", 2, str(tmp_path), 3, standard_12=True)
    assert agreement.recipe("uniform", 0, Choices()) == AgreementRecipe("uniform")
    assert AgreementRecipe("uniform").data == "templates"


@pytest.mark.parametrize("option", ["download", "standard_12"])
def test_an_option_that_a_task_has_not_is_refused_by_name(option):
    with pytest.raises(UsageError, match="the task agreement does not take it") as caught:
        TASKS["agreement"].recipe("softmax", 0, Choices(**{option: True}))
    assert caught.value.where == f"--{option.replace('_', '-')}"


def test_every_task_is_registered_everywhere_under_one_name():
    from entrain.deploy.pipeline import PROFILES, STAGES
    from entrain.models.networks import TASKS as NETWORKS
    from entrain.models.preparations import PREPARATIONS

    assert set(TASKS) == set(NETWORKS) == set(PREPARATIONS)
    assert set(TASKS) < set(STAGES)
    assert set(TASKS) < set(PROFILES)
    assert all(task.name == name for name, task in TASKS.items())
