"""Experiments are files: what they may say, what is refused and where, which setting wins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from entrain.deploy.errors import UsageError
from entrain.models.experiments.papers import published_figures
from entrain.models.experiments.specification import (
    build_workload,
    experiment_names,
    find_experiment,
    read_experiment,
)
from entrain.models.experiments.workloads import WORKLOADS

WHOLE = """
title = "Fitting"
paper = "a paper, table 1"
workload = "fitting"
baseline = "plain"
seeds = 2
[metrics.hard]
title = "hard"
unit = "%"
better = "higher"
margin = 1
[settings]
epochs = 3
slope = 3.0
[budgets.small]
epochs = 5
[budgets.paper]
epochs = 9
seeds = 4
[variants.plain]
[variants.steep]
title = "a steep one"
slope = 7
"""


@pytest.fixture(autouse=True)
def _fitting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKLOADS, "fitting", "fitting_workload:Fitting")


def written(folder: Path, text: str = WHOLE) -> Path:
    path = folder / "fitting.toml"
    path.write_text(text)
    return path


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    experiment = read_experiment(written(tmp_path))
    assert experiment.name == "fitting"
    assert list(experiment.variants) == ["plain", "steep"]
    assert [one.title for one in experiment.variants.values()] == ["plain", "a steep one"]
    assert {one.baseline for one in experiment.variants.values()} == {"plain"}
    assert experiment.metrics["hard"].margin == 1.0
    assert [(one.name, one.seeds) for one in experiment.budgets.values()] == [
        ("small", 2),
        ("paper", 4),
    ]


def test_the_variant_comes_before_the_budget_before_the_settings(tmp_path: Path) -> None:
    experiment = read_experiment(written(tmp_path))
    settings = {
        (budget, variant): build_workload(
            experiment, experiment.budget(budget), experiment.variants[variant]
        )
        for budget in ("small", "paper")
        for variant in ("plain", "steep")
    }
    found = {key: (one.epochs, one.slope) for key, one in settings.items()}  # type: ignore[attr-defined]
    assert found == {
        ("small", "plain"): (5, 3.0),
        ("small", "steep"): (5, 7.0),
        ("paper", "plain"): (9, 3.0),
        ("paper", "steep"): (9, 7.0),
    }


def test_without_budgets_small_is_the_settings_and_there_is_no_other(tmp_path: Path) -> None:
    text = WHOLE.replace("[budgets.small]\nepochs = 5\n", "").replace(
        "[budgets.paper]\nepochs = 9\nseeds = 4\n", ""
    )
    experiment = read_experiment(written(tmp_path, text))
    assert experiment.budget("small").settings == {}
    with pytest.raises(UsageError, match="no budget 'paper'"):
        experiment.budget("paper")


def test_a_list_becomes_a_tuple(tmp_path: Path) -> None:
    text = WHOLE.replace("slope = 3.0", "layers = [4, 5]")
    experiment = read_experiment(written(tmp_path, text))
    workload = build_workload(experiment, experiment.budget("small"), experiment.variants["plain"])
    assert workload.layers == (4, 5)  # type: ignore[attr-defined]


def test_a_variant_may_have_its_own_baseline(tmp_path: Path) -> None:
    text = WHOLE + 'baseline = "steep"\n'
    experiment = read_experiment(written(tmp_path, text))
    assert experiment.variants["steep"].baseline == "steep"


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("seeds = 2", "seeds = 2\nsteeds = 3", "steeds", "unknown key 'steeds'"),
        ("seeds = 2", 'seeds = "2"', "seeds", "seeds"),
        ("seeds = 2", "seeds = 0", "seeds", "seeds"),
        ('better = "higher"', 'better = "taller"', "better", "metrics.hard.better"),
        ("margin = 1", "marge = 1", "marge", "unknown key 'metrics.hard.marge'"),
        ("margin = 1", "margin = -1", "margin", "metrics.hard.margin"),
        ('workload = "fitting"', 'workload = "fishing"', "workload", "'fishing'"),
        ('baseline = "plain"', 'baseline = "fancy"', "baseline", "'fancy'"),
        ("[variants.plain]", '[variants."a/b"]', "", "a/b"),
    ],
)
def test_what_is_wrong_in_the_file_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, line: str, said: str
) -> None:
    path = written(tmp_path, WHOLE.replace(old, new, 1))
    with pytest.raises(UsageError) as refused:
        read_experiment(path)
    assert said in refused.value.what
    number = next(
        (n for n, text in enumerate(path.read_text().splitlines(), 1) if line and line in text), 0
    )
    assert str(refused.value.where).startswith(f"{path}:{number}" if line else str(path))


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE.replace('paper = "a paper, table 1"\n', ""))
    with pytest.raises(UsageError, match="'paper' is missing"):
        read_experiment(path)


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        ("epochs = 3", "epoks = 3", "settings.epoks"),
        ("epochs = 5", "epoks = 5", "budgets.small.epoks"),
        ("slope = 7", "slop = 7", "variants.steep.slop"),
        ("slope = 7", 'slope = "7"', "variants.steep.slope"),
        ("slope = 7", "layers = [1.5]", "variants.steep.layers"),
        ("epochs = 5", "epochs = 5.5", "budgets.small.epochs"),
    ],
)
def test_a_setting_that_does_not_fit_the_workload_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, keys: str
) -> None:
    path = written(tmp_path, WHOLE.replace(old, new, 1))
    experiment = read_experiment(path)
    with pytest.raises(UsageError) as refused:
        build_workload(experiment, experiment.budget("small"), experiment.variants["steep"])
    assert keys in refused.value.what
    number = path.read_text().splitlines().index(new) + 1
    assert refused.value.where == f"{path}:{number}"


def test_an_experiment_that_is_not_there_names_one_that_is() -> None:
    name = experiment_names()[0]
    with pytest.raises(UsageError, match=f"did you mean '{name}'"):
        find_experiment(f"{name}x")


@pytest.mark.parametrize("name", experiment_names())
def test_every_shipped_experiment_fits_its_workload_and_its_published_figures(name: str) -> None:
    experiment = find_experiment(name)
    for budget in experiment.budgets.values():
        for variant in experiment.variants.values():
            build_workload(experiment, budget, variant)
    assert published_figures(experiment).source or not published_figures(experiment).figures


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('source = "here"\n[odd]\nhard = { mean = 1.0 }\n', "no variant 'odd'"),
        ('source = "here"\n[plain]\nsoft = { mean = 1.0 }\n', "no metric 'soft'"),
        ('source = "here"\n[plain]\nhard = { mean = "1" }\n', "plain.hard.mean"),
        ("[plain]\nhard = { mean = 1.0 }\n", "'source' is missing"),
    ],
)
def test_published_figures_must_be_of_the_experiment(tmp_path: Path, text: str, said: str) -> None:
    experiment = read_experiment(written(tmp_path))
    published = tmp_path / "published"
    published.mkdir()
    (published / "fitting.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        published_figures(experiment, published)


def test_published_figures_are_read_by_variant_and_metric(tmp_path: Path) -> None:
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "fitting.toml").write_text(
        'source = "here"\n[plain]\nhard = { mean = 92.1, sd = 7.9, seeds = 5 }\n'
    )
    found = published_figures(read_experiment(written(tmp_path)), tmp_path / "published")
    figure = found.figure("plain", "hard")
    assert figure is not None
    assert (figure.mean, figure.sd, figure.seeds) == (92.1, 7.9, 5)
    assert found.figure("steep", "hard") is None


def test_listing_imports_no_workload() -> None:
    program = (
        "import sys\n"
        "from entrain.models.experiments.specification import experiment_names, find_experiment\n"
        "[find_experiment(name) for name in experiment_names()]\n"
        "print([name for name in ('torch', 'scipy', 'numpy', 'joblib') if name in sys.modules])\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"
