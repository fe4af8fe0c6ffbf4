"""Run folders are found by name, task and age."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from entrain.deploy.errors import UsageError
from entrain.deploy.runs import (
    Run,
    all_runs,
    comparison_folder,
    create_run,
    find_run,
    newest_results,
    newest_run,
)


def trained(root: Path, name: str, task: str, age: int) -> Run:
    run = create_run(root, name, {"task": task, "seed": 0})
    run.checkpoint.write_bytes(b"weights")
    os.utime(run.checkpoint, ns=(-age, 10**18 - age))
    return run


def test_a_run_keeps_what_was_asked_for(tmp_path: Path) -> None:
    run = create_run(tmp_path, "kws", {"task": "keyword", "training": {"epochs": 80}})
    assert run.settings() == {"task": "keyword", "training": {"epochs": 80}}
    assert run.task == "keyword"
    assert run.firmware("mps2-an386") == tmp_path / "kws" / "firmware-mps2-an386.elf"


def test_taking_up_a_run_again_keeps_its_files(tmp_path: Path) -> None:
    run = trained(tmp_path, "kws", "keyword", age=0)
    create_run(tmp_path, "kws", {"task": "keyword", "seed": 1})
    assert run.checkpoint.read_bytes() == b"weights"
    assert run.settings()["seed"] == 1


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "../out", "with space", "x" * 101])
def test_a_name_that_is_no_plain_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no name for a run"):
        create_run(tmp_path, name, {})
    assert list(tmp_path.iterdir()) == []


def test_the_newest_trained_run_of_a_task_is_taken(tmp_path: Path) -> None:
    trained(tmp_path, "old", "keyword", age=20)
    newest = trained(tmp_path, "new", "keyword", age=10)
    trained(tmp_path, "other", "agreement", age=0)
    create_run(tmp_path, "never-trained", {"task": "keyword"})
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "config.toml").write_text("task = ")
    (tmp_path / "damaged" / "model.pt").write_bytes(b"")
    assert newest_run(tmp_path, "keyword") == newest
    assert newest_run(tmp_path, "language") is None
    assert newest_run(tmp_path / "nowhere", "keyword") is None


def test_a_run_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    create_run(tmp_path, "kws", {})
    with pytest.raises(UsageError) as caught:
        find_run(tmp_path, "kwz")
    assert caught.value.remedy == "runs there are: kws"


def test_comparisons_are_folders_beside_the_runs(tmp_path: Path) -> None:
    folder = comparison_folder(tmp_path, "20300102-030405")
    folder.folder.mkdir(parents=True)
    folder.results.write_text("{}")
    create_run(tmp_path, "kws", {})
    assert newest_results(tmp_path) == folder
    assert {run.name for run in all_runs(tmp_path)} == {"compare-20300102-030405", "kws"}


def test_without_any_results_the_way_to_get_some_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        newest_results(tmp_path)
    assert "entrain compare" in (caught.value.remedy or "")
