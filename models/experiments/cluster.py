"""Where jobs run: processes of this machine, or a Ray cluster. Both through joblib."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from entrain.deploy.errors import ToolError, UsageError

SECONDS_TO_ANSWER = 5.0


@dataclass(frozen=True)
class Pool:
    """How to use the workers that joblib is directed to.

    Args:
        killed: the errors that say that a worker was killed.
        return_as: joblib's: whether outcomes come as they are there, or all at the end.
    """

    killed: tuple[type[BaseException], ...]
    return_as: str


class Workers(Protocol):
    """What jobs are given to."""

    @contextmanager
    def open(self, jobs: int) -> Iterator[Pool]:
        """Direct joblib to the workers while the block runs; ``jobs`` is how many there are."""
        ...


@dataclass(frozen=True)
class Processes:
    """Processes on this machine, one thread each.

    Args:
        count: how many; None for one a core.
    """

    count: int | None = None

    @contextmanager
    def open(self, jobs: int) -> Iterator[Pool]:
        """As `Workers.open`."""
        import joblib
        from joblib.externals.loky.process_executor import BrokenProcessPool

        count = max(1, min(self.count or joblib.cpu_count(), jobs))
        with joblib.parallel_config("loky", n_jobs=count, inner_max_num_threads=1):
            yield Pool((BrokenProcessPool,), "generator_unordered")


@dataclass(frozen=True)
class RayCluster:
    """The workers of a Ray cluster; its machines share the folders of runs and data with this one.

    Args:
        address: as ``ray.init`` takes it: ``127.0.0.1:6379``, ``ray://host:10001`` or ``auto``.
        count: how many jobs at a time; None for one a processor of the cluster.
    """

    address: str
    count: int | None = None

    @contextmanager
    def open(self, jobs: int) -> Iterator[Pool]:
        """As `Workers.open`.

        Raises:
            ToolError: ray is not installed.
            UsageError: no cluster answers at the address.
        """
        try:
            import ray
            from ray.util.joblib import register_ray
        except ImportError as error:
            raise ToolError(
                f"ray is not installed ({error})",
                where="--ray",
                remedy="pip install 'entrain-edge[cluster]'",
            ) from error
        import joblib

        try:
            _check_answer(self.address)
            ray.init(address=self.address, log_to_driver=False, logging_level="error")
        except (OSError, ValueError, RuntimeError) as error:
            raise UsageError(
                f"no Ray cluster answers: {error}",
                where=f"--ray {self.address}",
                remedy="start one with `ray start --head`, and name the address that it prints",
            ) from error
        try:
            register_ray()
            processors = int(ray.cluster_resources().get("CPU", 1))
            count = max(2, min(self.count or processors, jobs))  # with 1, joblib stays here
            with joblib.parallel_config("ray", n_jobs=count):
                # Joblib has no generator of outcomes for backends of this kind.
                yield Pool((ray.exceptions.RayError,), "list")
        finally:
            ray.shutdown()


def _check_answer(address: str) -> None:
    """Somebody listens at HOST:PORT: ray itself would try for minutes, and then end the process.

    Raises:
        OSError: nobody does.
        ValueError: the port is no number.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon:  # otherwise a word, such as auto
        socket.create_connection((host, int(port)), timeout=SECONDS_TO_ANSWER).close()
