"""Every test of experiments runs in a folder that holds one."""

from __future__ import annotations

from pathlib import Path

import pytest
from fitting_experiment import FILE

from entrain.models.experiments.workloads import WORKLOADS


@pytest.fixture(autouse=True)
def _in_a_folder_with_an_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setitem(WORKLOADS, "fitting", "fitting_workload:Fitting")
    Path("fitting.toml").write_text(FILE)
