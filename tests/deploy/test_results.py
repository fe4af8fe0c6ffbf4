"""results.json: the contract of design, honest about kinds and strict about damage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from entrain.deploy.environment import environment
from entrain.deploy.errors import ResultsError
from entrain.deploy.results import (
    Accuracy,
    Environment,
    Figure,
    Layer,
    PairedTest,
    Ratio,
    Result,
    Results,
    SeedSummary,
)
from entrain.deploy.results_file import read_results, row_values, write_results

ROW_FIELDS = {
    "run",
    "task",
    "attention",
    "coupling",
    "d_osc",
    "p",
    "seed",
    "split",
    "board",
    "cpu",
    "device",
    "meter",
    "toolchain",
    "parameters",
    "macs",
    "accuracy",
    "confusion",
    "mismatches",
    "instructions",
    "cycles",
    "latency_ms",
    "energy_uj",
    "flash_bytes",
    "ram_bytes",
    "arena_bytes",
    "stack_bytes",
    "layers",
}
ENERGY = Figure(
    value=640, kind="modelled", low=500, high=900, volts=1.8, mhz=120, source="L4R5, published"
)
ROW = Result(
    run="kws",
    task="keyword",
    attention="oscillator",
    coupling="relu",
    d_osc=2,
    p=1.0,
    board="mps2-an386",
    accuracy=Accuracy(float32=0.94, device=0.93, n=100, ci95=(0.86, 0.97)),
    labels=("yes", "no"),
    confusion=((40, 3), (4, 53)),
    instructions=4_000_000,
    energy_uj=ENERGY,
    layers=(Layer(id=0, name="stem", op="conv2d", macs=1, instructions=5),),
)
MADE_WITH = Environment(created="2030-01-02", command="entrain compare", platform="x", versions={})
COMPARISONS = (
    SeedSummary(
        task="keyword", board="b", mechanism="softmax", metric="accuracy", n_seeds=1, mean=1
    ),
    PairedTest(
        task="keyword",
        board="b",
        run="kws",
        baseline="twin",
        mechanism="oscillator relu",
        baseline_mechanism="softmax",
        difference=-0.01,
        ci95=(-0.02, 0.0),
        p_value=0.2,
        method="permutation",
        n=100,
    ),
    Ratio(
        task="keyword",
        board="b",
        run="kws",
        baseline="twin",
        mechanism="oscillator relu",
        baseline_mechanism="softmax",
        quantity="instructions",
        ratio=Figure(value=0.6, kind="counted"),
    ),
)
RESULTS = Results(environment=MADE_WITH, results=(ROW,), comparisons=COMPARISONS)


def damaged(path: Path, change: dict[str, object]) -> Path:
    value = json.loads(RESULTS.model_dump_json(by_alias=True))
    value["results"][0] |= change
    path.write_text(json.dumps(value))
    return path


def test_results_come_back_as_they_were_written(tmp_path: Path) -> None:
    write_results(tmp_path / "results.json", RESULTS)
    assert read_results(tmp_path / "results.json") == RESULTS


def test_a_row_has_every_field_of_the_contract_and_null_for_what_does_not_apply() -> None:
    (row,) = row_values(RESULTS)
    assert set(row) >= ROW_FIELDS
    assert row["stack_bytes"] is None
    assert row["accuracy"] == {
        "float": 0.94,
        "int8_host": None,
        "device": 0.93,
        "balanced": None,
        "n": 100,
        "ci95": [0.86, 0.97],
    }
    assert json.loads(RESULTS.model_dump_json(by_alias=True))["schema"] == 2


@pytest.mark.parametrize("missing", ["low", "high", "source"])
def test_a_modelled_figure_without_bounds_and_source_cannot_be_made(missing: str) -> None:
    honest = {"value": 1.0, "kind": "modelled", "low": 0.5, "high": 2.0, "source": "datasheet"}
    Figure.model_validate(honest)
    with pytest.raises(ValidationError, match="needs low, high and source"):
        Figure.model_validate({**honest, missing: None})


def test_bounds_hold_the_value() -> None:
    with pytest.raises(ValidationError, match="above the value"):
        Figure(value=1, kind="measured", low=2)
    with pytest.raises(ValidationError, match="below the value"):
        Figure(value=3, kind="measured", high=2)


def test_numbers_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(ValidationError, match="finite"):
        Figure(value=float("nan"), kind="measured")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"accuracy": {"n": 3, "device": 93.0}}, r"results\[0\]\.accuracy\.device"),
        ({"flavour": "vanilla"}, r"results\[0\]\.flavour"),
        ({"run": None}, r"results\[0\]\.run"),
        ({"confusion": [[1, 2], [3]]}, r"results\[0\]: .*square"),
        ({"energy_uj": {"value": 1, "kind": "guessed"}}, r"results\[0\]\.energy_uj\.kind"),
    ],
)
def test_a_damaged_field_is_named_with_its_file(
    tmp_path: Path, change: dict[str, object], field: str
) -> None:
    path = damaged(tmp_path / "results.json", change)
    with pytest.raises(ResultsError, match=field) as caught:
        read_results(path)
    assert caught.value.where == str(path)


def test_half_a_file_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"schema": 2,\n "results": [')
    with pytest.raises(ResultsError, match="not JSON") as caught:
        read_results(path)
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize("content", ['{"schema": 1}', '{"schema": 3}', "{}", "[]", "3"])
def test_another_schema_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(ResultsError, match="reads schema 2"):
        read_results(path)


def test_a_missing_file_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="entrain compare"):
        read_results(tmp_path / "results.json")


@pytest.mark.parametrize(
    ("coupling", "d_osc", "p", "words"),
    [
        ("relu", 2, 1.0, "oscillator relu"),
        ("separable", 4, 1.0, "oscillator separable d=4"),
        ("relu", 2, 1.5, "oscillator relu p=1.5"),
        (None, None, None, "oscillator"),
    ],
)
def test_a_mechanism_is_named_with_what_sets_it_apart(
    coupling: str | None, d_osc: int | None, p: float | None, words: str
) -> None:
    row = ROW.model_copy(update={"coupling": coupling, "d_osc": d_osc, "p": p})
    assert row.mechanism == words


def test_the_environment_names_versions_without_importing_them() -> None:
    script = (
        "import sys; from entrain.deploy.environment import environment\n"
        "found = environment()\n"
        "assert found.versions['torch'] and found.versions['python'], found\n"
        "assert not {'torch', 'tvm', 'brevitas', 'onnx', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_program_that_is_not_installed_has_no_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    versions = environment().versions
    assert versions["qemu"] is None
    assert versions["gcc"] is None
