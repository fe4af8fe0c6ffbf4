"""Jobs: one training of one variant with one seed, and what tells it from another."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from entrain.deploy.errors import DataError, UsageError
from entrain.models.experiments.specification import Experiment, build_workload

if TYPE_CHECKING:
    from entrain.models.experiments.workload import Workload

BUILT_IN = "built-in"


@dataclass(frozen=True)
class Job:
    """A training of one variant of an experiment.

    Args:
        experiment, budget, variant: by name.
        seed: of everything random.
        workload: the task with all its settings.
        data: what the data folder is and holds, as `data_identity` says it.
        folder: of the data; None for the built-in data.
    """

    experiment: str
    budget: str
    variant: str
    seed: int
    workload: Workload
    data: str
    folder: Path | None = None

    @property
    def name(self) -> str:
        """As files and people call it."""
        return f"{self.variant}-seed{self.seed}"

    @property
    def version(self) -> int:
        """The workload's: raised when the same settings come to mean another computation."""
        return int(getattr(type(self.workload), "version", 1))

    @property
    def settings(self) -> Mapping[str, Any]:
        """All fields of the workload, defaults too, as JSON gives them back."""
        fields = asdict(cast("Any", self.workload))
        settings: dict[str, Any] = json.loads(json.dumps(fields, default=str))
        return settings

    @property
    def key(self) -> str:
        """A digest of all that the outcome depends on."""
        content = [type(self.workload).__name__, self.version, self.seed, self.data, self.settings]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def plan(
    experiment: Experiment,
    budget: str,
    variants: Sequence[str],
    seeds: int | None,
    data: Path | None,
) -> list[Job]:
    """The jobs, seed by seed: the first seed of every variant is there before the second of any.

    Args:
        experiment: the experiment.
        budget: the budget's name.
        variants: their names, or none of them for all.
        seeds: how many, 0 to n - 1; None for as many as the budget says.
        data: the data's folder; None for the built-in data.

    Raises:
        UsageError: no such budget or variant, or a setting does not fit the workload.
        DataError: the data's folder is not there.
    """
    unknown = [name for name in variants if name not in experiment.variants]
    if unknown:
        raise UsageError(
            f"the experiment {experiment.name!r} has no variant {unknown[0]!r}",
            where="--variants",
            remedy=f"its variants: {', '.join(experiment.variants)}",
        )
    chosen = experiment.budget(budget)
    workloads = {
        name: build_workload(experiment, chosen, variant)
        for name, variant in experiment.variants.items()
        if not variants or name in variants
    }
    identity = data_identity(data)
    return [
        Job(experiment.name, budget, name, seed, workload, identity, data)
        for seed in range(chosen.seeds if seeds is None else seeds)
        for name, workload in workloads.items()
    ]


def data_identity(folder: Path | None) -> str:
    """The folder's name and a fingerprint of the names and sizes of its files.

    Cheap: no file is read. Two folders of one name with files of equal names and sizes are taken
    for the same data.

    Raises:
        DataError: there is no such folder.
    """
    if folder is None:
        return BUILT_IN
    if not folder.is_dir():
        raise DataError(
            "there is no such folder", where=str(folder), remedy="see --data-dir in --help"
        )
    digest = hashlib.sha256()
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = Path(parent, name)
            size = path.stat().st_size if path.exists() else -1  # a link to nowhere
            digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\n".encode())
    return f"{folder.resolve().name} {digest.hexdigest()[:16]}"
