"""An experiment on a Ray cluster comes to what it comes to here."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import entrain
from fitting_experiment import run

RAY = importlib.util.find_spec("ray") is not None


def test_without_ray_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    ended = run("--ray", "127.0.0.1:1")
    assert ended.code == 2
    assert "ray is not installed" in ended.err
    assert "try: pip install 'entrain-edge[cluster]'" in ended.err


@pytest.fixture
def ray_address(tmp_path: Path) -> Iterator[str]:
    """A Ray cluster of this machine alone, on the loopback interface."""
    import ray

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "ray.scripts.scripts"]
    options = [
        "--head", "--node-ip-address=127.0.0.1", f"--port={port}", "--num-cpus=2",
        "--include-dashboard=false", "--disable-usage-stats", "--object-store-memory=100000000",
        "--block",
    ]  # fmt: skip
    with (tmp_path / "ray.log").open("w") as log:
        head = subprocess.Popen(
            [*command, "start", *options],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    address = f"127.0.0.1:{port}"
    try:
        while True:
            assert head.poll() is None, (tmp_path / "ray.log").read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
        yield address
    finally:
        ray.shutdown()
        head.terminate()
        head.wait()


@pytest.mark.long
@pytest.mark.skipif(not RAY, reason="ray is not installed: pip install 'entrain-edge[cluster]'")
def test_a_ray_cluster_comes_to_the_same(ray_address: str) -> None:
    alone = run("--json", "--runs-dir", "alone").value
    ended = entrain(
        "experiment", "run", "fitting.toml", "--ray", ray_address, "--json", "--runs-dir", "cluster"
    )
    assert ended.code == 0, ended.err
    figures = [[(row["variant"], row["values"]) for row in rows] for rows in (alone, ended.value)]
    assert figures[0] == figures[1]


@pytest.mark.long
@pytest.mark.skipif(not RAY, reason="ray is not installed: pip install 'entrain-edge[cluster]'")
def test_an_address_without_a_cluster_is_wrong_use() -> None:
    ended = run("--ray", "127.0.0.1:1")
    assert ended.code == 2
    assert "no Ray cluster answers" in ended.err
