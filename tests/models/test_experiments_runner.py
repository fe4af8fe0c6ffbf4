"""Jobs are done once, kept as they end, and go on where they were stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import fitting_workload
import pytest
from fitting_workload import Fitting

from entrain.deploy.errors import DataError, ResultsError, ToolError, TrainingDiverged
from entrain.models.experiments.cluster import Processes
from entrain.models.experiments.jobs import Job, data_identity
from entrain.models.experiments.runner import Ended, Failure, pending, run_job, run_jobs
from entrain.models.experiments.store import Record, Store, difference, read_record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.of(tmp_path, "fitting", "small")


def job(seed: int = 0, workload: Fitting | None = None, variant: str = "plain") -> Job:
    return Job("fitting", "small", variant, seed, workload or Fitting(), "built-in")


def outcome(one: Ended) -> Record:
    assert isinstance(one.outcome, Record), one.outcome
    return one.outcome


def run(jobs: Sequence[Job], store: Store, count: int = 1) -> dict[str, Ended]:
    return {one.job.name: one for one in run_jobs(jobs, store, Processes(count))}


def same_figures(one: Record, other: Record) -> bool:
    return (one.metrics, one.curves) == (other.metrics, other.curves)


def test_an_outcome_is_kept_with_all_it_depends_on(store: Store) -> None:
    ended = run_job(job(seed=3), store)
    record = read_record(store.folder / "plain-seed3.json")
    assert record == outcome(ended)
    assert (record.variant, record.seed, record.key) == ("plain", 3, job(seed=3).key)
    assert record.settings["epochs"] == 4
    assert set(record.metrics) == {"hard", "loss"}
    assert len(record.curves["losses"]) == 4
    assert record.environment["torch"]


def test_nothing_but_the_outcome_is_left(store: Store) -> None:
    run_job(job(), store)
    assert [path.name for path in store.folder.iterdir()] == ["plain-seed0.json"]


def test_a_finished_job_is_not_run_again(store: Store) -> None:
    run_job(job(), store)
    assert pending([job(), job(seed=1)], store) == [job(seed=1)]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (job(workload=Fitting(epochs=5)), "epochs 4, now 5"),
        (replace(job(), data="speech 123"), "data built-in, now speech 123"),
    ],
)
def test_a_changed_job_is_run_anew_and_the_old_outcome_is_kept_aside(
    store: Store, changed: Job, words: str
) -> None:
    before = outcome(run_job(job(), store))
    assert pending([changed], store) == [changed]
    assert difference(before, changed) == words
    after = outcome(run_job(changed, store))
    assert read_record(store.record_path(changed)) == after
    (aside,) = (store.folder / "replaced").iterdir()
    assert read_record(aside) == before


def test_a_higher_version_of_the_workload_is_another_job(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = job().key
    run_job(job(), store)
    monkeypatch.setattr(Fitting, "version", 2, raising=False)
    assert pending([job()], store) == [job()]
    assert job().key != before


def test_a_setting_that_came_later_and_is_at_its_default_changes_nothing(store: Store) -> None:
    path = store.record_path(job())
    run_job(job(), store)
    content = json.loads(path.read_text())
    del content["settings"]["layers"]
    path.write_text(json.dumps(content))
    assert pending([job()], store) == []
    assert pending([job(workload=Fitting(layers=(1,)))], store)


def test_a_figure_that_is_no_number_is_kept(store: Store) -> None:
    record = outcome(run_job(job(), store))
    odd = replace(record, metrics={"hard": float("inf"), "loss": float("nan")})
    store.write(odd, job())
    json.loads(store.record_path(job()).read_text(), parse_constant=pytest.fail)
    assert repr(read_record(store.record_path(job())).metrics) == "{'hard': inf, 'loss': nan}"


@pytest.mark.parametrize("content", ["", "{", "{}", '{"experiment": 1}'])
def test_a_damaged_outcome_is_named_not_run_over(store: Store, content: str) -> None:
    store.folder.mkdir()
    store.record_path(job()).write_text(content)
    with pytest.raises(ResultsError, match=r"plain-seed0\.json"):
        pending([job()], store)


def test_one_failed_job_does_not_end_the_others(store: Store) -> None:
    workload = Fitting(fails_with_seed=0, breaks_with_seed=2)
    ended = run([job(seed, workload) for seed in range(4)], store, count=2)
    assert ended["plain-seed0"].outcome == Failure(
        "the loss is no number", None, "lower the rate", 1, TrainingDiverged
    )
    assert ended["plain-seed0"].failed_by(TrainingDiverged)
    assert not ended["plain-seed1"].failed_by(Exception)
    broken = ended["plain-seed2"].outcome
    assert isinstance(broken, Failure)
    assert broken.what == "ZeroDivisionError: a bug"
    assert str(broken.where).startswith(fitting_workload.__file__)
    assert [record.seed for record in store.records()] == [1, 3]


@pytest.mark.parametrize("count", [1, 2])
def test_missing_data_is_told_once_and_the_other_jobs_are_left(store: Store, count: int) -> None:
    jobs = [job(seed, Fitting(needs_data=True)) for seed in range(6)]
    (ended,) = run_jobs(jobs, store, Processes(count))
    assert ended.failed_by(DataError)
    assert not store.records()


def test_data_that_a_later_job_alone_lacks_does_not_end_the_others(store: Store) -> None:
    jobs = [job(0), job(1, Fitting(needs_data=True)), job(2)]
    ended = run(jobs, store)
    assert [one.failed_by(DataError) for one in ended.values()] == [False, True, False]


def test_as_many_processes_as_one_likes_come_to_the_same(store: Store, tmp_path: Path) -> None:
    jobs = [job(seed) for seed in range(3)]
    alone = run(jobs, store)
    together = run(jobs, Store(tmp_path / "other"), count=2)
    for name, one in alone.items():
        assert same_figures(outcome(one), outcome(together[name]))


def test_a_killed_worker_is_replaced_and_its_job_ends_as_if_nothing_had_been(
    store: Store, tmp_path: Path
) -> None:
    whole = outcome(run_job(job(), Store(tmp_path / "whole")))
    marker = tmp_path / "killed"
    fragile = job(workload=Fitting(killed_once=str(marker)), variant="fragile")
    ended = run([fragile, job(1), job(2)], store, count=2)
    assert marker.exists()
    assert same_figures(outcome(ended["fragile-seed0"]), whole)
    assert len(store.records()) == 3
    assert not list(store.folder.glob("*snapshot*"))


def test_workers_killed_again_and_again_end_the_work(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("entrain.models.experiments.runner.PATIENCE", 1)
    fragile = job(workload=Fitting(killed_once=str(tmp_path / "killed")), variant="fragile")
    with pytest.raises(ToolError, match="killed"):
        run([fragile, job(1)], store, count=2)


@pytest.mark.parametrize("swallows", [False, True])
def test_ctrl_c_stops_a_job_and_the_next_run_ends_as_if_nothing_had_been(
    store: Store, tmp_path: Path, swallows: bool
) -> None:
    whole = outcome(run_job(job(), Store(tmp_path / "whole")))
    marker = str(tmp_path / "interrupted")
    stopped = job(workload=Fitting(interrupted_once=marker, swallows=swallows))
    with pytest.raises(KeyboardInterrupt):
        run([stopped], store)
    assert not store.records()
    assert store.snapshot_path(stopped).is_file()
    progress = store.progress(stopped)
    assert progress is not None
    # What was swallowed is raised once more after the next epoch.
    assert (progress.epoch, progress.epochs) == (3 if swallows else 2, 4)
    ended = run([stopped], store)
    assert same_figures(outcome(ended["plain-seed0"]), whole)


def test_data_is_known_by_its_files_names_and_sizes(tmp_path: Path) -> None:
    (tmp_path / "speech" / "yes").mkdir(parents=True)
    (tmp_path / "speech" / "yes" / "a.wav").write_bytes(b"1234")
    before = data_identity(tmp_path / "speech")
    assert before.startswith("speech ")
    assert data_identity(tmp_path / "speech") == before
    (tmp_path / "speech" / "yes" / "a.wav").write_bytes(b"12345")
    assert data_identity(tmp_path / "speech") != before
    assert data_identity(None) == "built-in"
    with pytest.raises(DataError, match="no such folder"):
        data_identity(tmp_path / "nowhere")
