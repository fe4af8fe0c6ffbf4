"""``entrain report`` finds what was measured, prints it and writes the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from entrain.deploy.cli import main
from entrain.deploy.results import Results
from entrain.deploy.results_file import row_values, write_results

ResultsMaker = Callable[..., Results]


@pytest.fixture
def measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_results: ResultsMaker
) -> Results:
    """A comparison in ./runs/compare-1, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    results = make_results(("softmax", "uniform"), ("mps2-an386",))
    write_results(tmp_path / "runs" / "compare-1" / "results.json", results)
    return results


def report(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as ending:
        main(["report", *arguments])
    return ending.value.code


@pytest.mark.parametrize(
    "source", [[], ["compare-1"], ["runs/compare-1"], ["runs/compare-1/results.json"]]
)
def test_the_source_may_be_left_out_a_name_a_folder_or_a_file(
    measured: Results, source: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(*source) == 0
    out, err = capsys.readouterr()
    assert measured.results[0].run in out
    assert "modelled" in out
    assert "report.html" in err
    assert "<h1>keyword" in Path("runs/compare-1/report.html").read_text()


def test_json_is_the_list_of_rows(measured: Results, capsys: pytest.CaptureFixture[str]) -> None:
    assert report("--json") == 0
    assert json.loads(capsys.readouterr().out) == row_values(measured)


@pytest.mark.usefixtures("measured")
def test_the_page_can_go_elsewhere() -> None:
    assert report("--output", "page.html") == 0
    assert Path("page.html").is_file()
    assert not Path("runs/compare-1/report.html").exists()


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("source", ["compare-2", "missing.json"])
def test_what_is_not_there_is_wrong_use(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(source) == 2
    assert source in capsys.readouterr().err


@pytest.mark.usefixtures("measured")
def test_a_damaged_file_leaves_the_old_page(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path("runs/compare-1")
    assert report() == 0
    page = (folder / "report.html").read_text()
    (folder / "results.json").write_text('{"schema": 2, "results": [')
    assert report() == 2
    assert "not JSON" in capsys.readouterr().err
    assert (folder / "report.html").read_text() == page
