"""Ctrl-C in an experiment: what is finished is kept, and the next run ends alike."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fitting_experiment import change, run

HELPERS = Path(__file__).resolve().parents[2] / "helpers"
# A command line that knows the workload of the tests too.
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner of tests may ignore it
from entrain.models.experiments.workloads import WORKLOADS
WORKLOADS["fitting"] = "fitting_workload:Fitting"
from entrain.deploy.cli import main
main()
"""


def started(*arguments: str) -> subprocess.Popen[str]:
    """The command in a process group of its own, as a terminal starts it."""
    environment = {**os.environ, "PYTHONPATH": str(HELPERS)}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "experiment", "run", "fitting.toml", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(seen: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not seen():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_exits_130_keeps_what_is_finished_and_the_next_run_ends_alike(jobs: str) -> None:
    change("slope = 3.0", "slope = 3.0\nepochs = 20000")
    process = started("--jobs", jobs)
    folder = Path("runs/experiment-fitting-small")
    wait_for(
        lambda: any(folder.glob("plain-seed*.json")) and any(folder.glob("steep-*.pt")), process
    )
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert out == ""
    assert "of 4 runs are finished and kept" in err
    assert "To go on: " in err
    assert not list(folder.glob("steep-seed?.json"))
    assert run("--variants", "plain", "--json").value[0]["n_seeds"] == 2
