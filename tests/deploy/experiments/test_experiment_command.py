"""``entrain experiment``: list, run, show; what is printed, resumed, refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import entrain
from fitting_experiment import change, run

from entrain.deploy.cli.experiment_table import law_words
from entrain.models.experiments.power_law import fit_power_law
from entrain.models.experiments.specification import experiment_names


def test_list_gives_names_or_a_table() -> None:
    assert entrain("experiment", "list", "--json").value == experiment_names()
    table = entrain("experiment", "list").out
    assert all(name in table for name in experiment_names())


def test_run_gives_a_row_a_variant_and_metric() -> None:
    rows = run("--json").value
    assert [(row["variant"], row["metric"], row["n_seeds"]) for row in rows] == [
        ("plain", "hard", 2),
        ("steep", "hard", 2),
    ]
    for row in rows:
        assert row["mean"] == pytest.approx(sum(row["values"].values()) / 2)
        assert row["ci95"][0] < row["mean"] < row["ci95"][1]
        assert row["sd"] > 0
        assert row["published"] is None
    assert rows[0]["comparison"] is None
    assert rows[1]["comparison"]["baseline"] == "plain"


def test_the_table_is_for_people() -> None:
    ended = run()
    assert ended.code == 0
    for text in ("Fitting (a paper, table 1), budget small", "a steep one", "paper", "[first]"):
        assert text in ended.out
    assert "4 runs; outcomes in runs/experiment-fitting-small" in ended.err
    assert "steep, seed 1: hard" in ended.err


def test_quiet_says_nothing_beside_the_result() -> None:
    assert run("--quiet", "--json").err == ""


def test_what_is_finished_is_not_run_again() -> None:
    first = run("--json")
    stored = {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*.json")}
    assert len(stored) == 4
    again = run("--json")
    assert again.out == first.out
    assert "4 of them finished before" in again.err
    assert {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*.json")} == stored


def test_more_seeds_add_to_what_is_there() -> None:
    run("--variants", "plain")
    ended = run("--seeds", "3", "--json")
    assert [row["n_seeds"] for row in ended.value] == [3, 3]
    assert "6 runs, 2 of them finished before" in ended.err


def test_a_changed_setting_is_said_and_run_anew() -> None:
    run("--variants", "plain", "--seeds", "1")
    change("epochs = 3", "epochs = 2")
    shown = entrain("experiment", "show", "fitting.toml", "--json")
    assert "plain, seed 0: made otherwise (epochs 3, now 2)." in shown.err
    assert [row["n_seeds"] for row in shown.value] == [0, 0]
    ended = run("--variants", "plain", "--seeds", "1")
    assert "Run anew, the old outcome put aside: plain-seed0 (epochs 3, now 2)." in ended.err
    assert len(list(Path("runs/experiment-fitting-small/replaced").iterdir())) == 1


def test_show_prints_what_is_stored_and_runs_nothing() -> None:
    nothing = entrain("experiment", "show", "fitting.toml")
    assert nothing.code == 0
    assert "entrain experiment run fitting.toml" in nothing.err
    assert not Path("runs").exists()
    rows = run("--json").value
    assert entrain("experiment", "show", "fitting.toml", "--json").value == rows


def test_show_prints_markdown_for_a_readme() -> None:
    run("--variants", "plain")
    lines = entrain("experiment", "show", "fitting.toml", "--markdown").out.splitlines()
    assert lines[0] == "|  | runs | hard, % | to baseline |"
    assert lines[2].startswith("| plain | 2 | ")
    assert lines[3] == "| a steep one | 0 | \N{EN DASH} | \N{EN DASH} |"
    assert lines[-1] == "Read this [first]."


@pytest.mark.parametrize("command", ["run", "show"])
def test_a_file_with_the_name_of_a_shipped_experiment_is_not_that_one(command: str) -> None:
    Path("fitting.toml").rename("sva.toml")
    ended = entrain("experiment", command, "sva.toml")
    assert ended.code == 0
    assert "TMLR" not in ended.out


def test_a_failed_training_is_explained_below_the_table() -> None:
    change("margin = 1.0", "failure = 200.0")
    assert "A run below 200 % counts as failed (hard)." in run().out
    change("failure = 200.0", "failure = 0.0")
    assert "counts as failed" not in run().out


def test_failed_trainings_are_counted_with_interval_and_test() -> None:
    change("margin = 1.0", "failure = 200.0")
    ended = run()
    assert "hard: failed" in ended.out
    for row in ended.out.split("hard: failed")[1].splitlines()[1:3]:
        assert "2 of 2 34 to 100 %" in row
    rows = run("--json").value
    assert rows[0]["failures_ci95"] == pytest.approx([0.342, 1.0], abs=0.001)
    assert rows[1]["comparison"]["failures_p"] == 1.0
    assert rows[1]["comparison"]["failures_p_holm"] == 1.0
    lines = entrain("experiment", "show", "fitting.toml", "--markdown").out.splitlines()
    assert ", 2 of 2 failed (34 to 100 %) |" in lines[2]
    assert lines[3].endswith("; failures p 1.000) |")


def test_a_run_that_diverged_is_said_below_the_table() -> None:
    change("slope = 3.0", "fails_with_seed = 0")
    assert "(TrainingDiverged): 1. Nothing" in " ".join(run().out.split())
    change("fails_with_seed = 0", "slope = 3.0")
    assert "TrainingDiverged" not in run().out


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_missing_data_is_said_once(jobs: str) -> None:
    change("epochs = 3", "epochs = 3\nneeds_data = true")
    ended = entrain("experiment", "run", "fitting.toml", "--jobs", jobs)
    assert ended.code == 2
    assert ended.err.count("there is no data") == 1
    assert "Data is missing: the other 3 runs are left too." in ended.err
    assert "try: name it with --data-dir" in ended.err


def test_a_misspelt_metric_or_curve_is_said_with_the_names_there_are() -> None:
    change("[settings]", '[metrics.lost]\ntitle = "lost"\nbetter = "lower"\n[settings]')
    change('kind = "metric"\ny = "hard"', 'kind = "curve"\ny = "loses"')
    nothing = entrain("experiment", "show", "fitting.toml")
    assert "no run has" not in nothing.err
    for ended in (run(), entrain("experiment", "show", "fitting.toml")):
        assert ended.err.count("fitting.toml:13: no run has a metric 'lost'") == 1
        assert "there are: hard, loss." in ended.err
        assert ended.err.count("no run has a curve 'loses'; there are: losses.") == 1


def test_an_experiment_is_summarised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from entrain.models.experiments import summary

    calls: list[int] = []
    summarise = summary.summarise

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return summarise(*arguments)

    monkeypatch.setattr(summary, "summarise", counted)
    run()
    assert len(calls) == 1


def test_a_run_of_many_metrics_is_told_with_the_first_of_them() -> None:
    ended = entrain("experiment", "run", "cost", "--variants", "keyword-softmax", "--jobs", "1")
    (line,) = [line for line in ended.err.splitlines() if line.startswith("keyword-softmax, seed")]
    assert ", ..., " in line
    assert len(line) < 160
    assert "one seed" not in ended.out


def test_plots_are_drawn_into_the_experiments_folder() -> None:
    ended = run()
    plot = Path("runs/experiment-fitting-small/plot-hard.png")
    assert f"plot: {plot}" in ended.err
    assert plot.is_file()
    assert plot.with_suffix(".svg").is_file()


def test_a_run_of_few_variants_leaves_the_others_in_the_plots() -> None:
    run()
    plot = Path("runs/experiment-fitting-small/plot-hard.svg")
    before = plot.read_bytes()
    run("--variants", "plain", "--seeds", "1")
    assert plot.read_bytes() == before


def test_a_failed_run_is_reported_and_the_others_are_there() -> None:
    change("slope = 3.0", "fails_with_seed = 0")
    ended = run("--json")
    assert ended.code == 1
    assert [row["n_seeds"] for row in ended.value] == [2, 1]
    assert "steep, seed 0 failed: the loss is no number" in ended.err
    assert "error: steep, seed 0: the loss is no number" in ended.err
    assert "try: lower the rate" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "nothing"], "there is no experiment 'nothing'"),
        (["run", "fitting.toml", "--variants", "odd"], "has no variant 'odd'"),
        (["run", "fitting.toml", "--budget", "huge"], "has no budget 'huge'"),
        (["show", "fitting.toml", "--budget", "huge"], "has no budget 'huge'"),
        (["run", "fitting.toml", "--data-dir", "nowhere"], "there is no such folder"),
        (["rum"], "rum"),
    ],
)
def test_wrong_use_exits_2(arguments: list[str], said: str) -> None:
    ended = entrain("experiment", *arguments)
    assert ended.code == 2
    assert said in ended.err
    assert ended.out == ""


def test_a_wrong_setting_is_found_before_anything_is_run() -> None:
    change("slope = 3.0", "slop = 3.0")
    ended = run()
    assert ended.code == 2
    assert "at: fitting.toml:18" in ended.err
    assert not Path("runs").exists()


def test_a_key_misspelt_is_named_and_not_the_one_that_it_leaves_missing() -> None:
    change("seeds = 2", "sedes = 2")
    ended = run()
    assert ended.code == 2
    assert "unknown key 'sedes'" in ended.err
    assert "at: fitting.toml:6" in ended.err


@pytest.mark.parametrize(("seeds", "warned"), [(3, True), (10, False)])
def test_a_slope_over_few_seeds_is_said_to_be_less_sure_than_it_looks(
    seeds: int, warned: bool
) -> None:
    gaps = {"a": np.linspace(1.9, 2.1, seeds), "b": np.linspace(1.1, 0.9, seeds)}
    words = law_words(fit_power_law("loss", {"a": 2, "b": 4}, gaps))
    assert "bootstrap over seeds" in words
    assert ("too narrow" in words) == warned


def test_options_come_from_the_environment_and_the_project_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("entrain.toml").write_text(
        'runs-dir = "top"\n[experiment]\nseeds = 3\n[experiment.run]\nvariants = "plain"\n'
    )
    assert [row["n_seeds"] for row in run("--json").value] == [3, 0]
    assert Path("top/experiment-fitting-small").is_dir()
    monkeypatch.setenv("ENTRAIN_SEEDS", "1")
    assert [row["n_seeds"] for row in run("--json").value] == [1, 0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[experiment]\nseed = 3\n", 2),
        ("[experiment.run]\nseeds = 3\nsamples = 3\n", 3),
        ("[experiment.ran]\nseeds = 3\n", 1),
    ],
)
def test_an_unknown_key_for_a_nested_command_is_refused_with_its_line(text: str, line: int) -> None:
    Path("entrain.toml").write_text(text)
    ended = entrain("experiment", "list")
    assert ended.code == 2
    assert f"at: entrain.toml:{line}\n" in ended.err
