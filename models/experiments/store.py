"""Where outcomes are kept: a folder an experiment and budget, a JSON file a finished job."""

from __future__ import annotations

import contextlib
import json
import math
import platform
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from entrain.deploy.errors import ResultsError
from entrain.deploy.files import write_whole
from entrain.models.experiments.jobs import Job

if TYPE_CHECKING:
    from entrain.models.experiments.workload import Outcome
    from entrain.models.training import EpochReport

# JSON has no word for a number that is none; "nan" and "inf" are read back by float().
Number = Annotated[float, BeforeValidator(float)]
RECORD = re.compile(r"(?P<variant>.+)-seed(?P<seed>\d+)\.json")
REPLACED = "replaced"
DISTRIBUTIONS = {"entrain": "entrain-edge", "torch": "torch", "numpy": "numpy"}


@dataclass(frozen=True)
class Record:
    """A finished job: what was asked for, and what it came to.

    Args:
        experiment, budget, variant, seed: the job.
        key: the digest of all that the outcome depends on.
        version: the workload's.
        settings: all fields of the workload.
        data: what the data was.
        metrics, curves: the outcome.
        seconds: how long it took since it was begun or, after an interruption, taken up again.
        finished: when, in UTC.
        environment: versions and platform.
    """

    experiment: str
    budget: str
    variant: str
    seed: int
    key: str
    version: int
    settings: dict[str, Any]
    data: str
    metrics: dict[str, Number]
    curves: dict[str, tuple[Number, ...]]
    seconds: float
    finished: str
    environment: dict[str, str]


@dataclass(frozen=True)
class Progress:
    """How far a job under way is."""

    epoch: int
    epochs: int
    loss: float
    validation: float


@dataclass(frozen=True)
class Store:
    """The folder of one experiment and budget."""

    folder: Path

    @classmethod
    def of(cls, root: Path, experiment: str, budget: str) -> Store:
        """The store under the folder that holds the runs."""
        return cls(root / f"experiment-{experiment}-{budget}")

    def record_path(self, job: Job) -> Path:
        """The file of the finished job."""
        return self.folder / f"{job.name}.json"

    def snapshot_path(self, job: Job) -> Path:
        """The training under way; of this very job: one with other settings has another file."""
        return self.folder / f"{job.name}.{job.key[:12]}.snapshot.pt"

    def progress_path(self, job: Job) -> Path:
        """How far the job under way is."""
        return self.folder / f"{job.name}.progress.json"

    def find(self, job: Job) -> Record | None:
        """What is stored in the job's place, whether of the same settings or not; or None.

        Raises:
            ResultsError: the file is damaged.
        """
        path = self.record_path(job)
        return read_record(path) if path.is_file() else None

    def records(self) -> list[Record]:
        """Every finished job, in the order of variant and seed.

        Raises:
            ResultsError: a file is damaged.
        """
        paths = [path for path in self.folder.glob("*.json") if RECORD.fullmatch(path.name)]
        found = [read_record(path) for path in paths]
        return sorted(found, key=lambda record: (record.variant, record.seed))

    def write(self, record: Record, job: Job) -> None:
        """Keep the outcome; one with other settings in its place is put aside, not lost."""
        path = self.record_path(job)
        if path.is_file():
            before = read_record(path)
            if before.key != record.key:
                aside = self.folder / REPLACED / f"{job.name}-{before.key[:12]}.json"
                write_whole(aside, path.read_bytes())
        content = _finite(asdict(record))
        write_whole(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    def tell(self, job: Job, report: EpochReport) -> None:
        """Say how far the job is, for whoever looks."""
        progress = Progress(report.epoch, report.epochs, report.loss, report.validation)
        write_whole(self.progress_path(job), json.dumps(_finite(asdict(progress))))

    def progress(self, job: Job) -> Progress | None:
        """How far the job under way is; None if it is not, or has not finished an epoch."""
        try:
            content = json.loads(self.progress_path(job).read_text(encoding="utf-8"))
            return Progress(
                int(content["epoch"]),
                int(content["epochs"]),
                float(content["loss"]),
                float(content["validation"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None  # it comes and goes, and is nothing but a remark

    def clear(self, job: Job) -> None:
        """Remove what a job under way leaves: progress, snapshots, half written files."""
        for pattern in (f"{job.name}.*snapshot.pt", f".{job.name}.*-????????.*"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)
        self.forget_progress(job)

    def forget_progress(self, job: Job) -> None:
        """The job is not under way."""
        with contextlib.suppress(OSError):
            self.progress_path(job).unlink()


def record_of(job: Job, outcome: Outcome, seconds: float) -> Record:
    """What is kept of a finished job."""
    return Record(
        experiment=job.experiment,
        budget=job.budget,
        variant=job.variant,
        seed=job.seed,
        key=job.key,
        version=job.version,
        settings=dict(job.settings),
        data=job.data,
        metrics={name: float(value) for name, value in outcome.metrics.items()},
        curves={name: tuple(map(float, curve)) for name, curve in outcome.curves.items()},
        seconds=round(seconds, 3),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        environment=_environment(),
    )


def read_record(path: Path) -> Record:
    """The outcome kept in a file.

    Raises:
        ResultsError: it cannot be read or is no outcome.
    """
    try:
        return TypeAdapter(Record).validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise ResultsError(
            f"the outcome cannot be read ({reason})",
            where=str(path),
            remedy="move it away; the job is then run again",
        ) from error


def difference(record: Record, job: Job, *, data: bool = True) -> str:
    """In words, what the kept outcome depends on that the job has otherwise; empty if nothing.

    A field that the workload did not have yet, and that is now at its default, is no difference:
    a new field's default stands for what was done before there was one.

    Args:
        record: the kept outcome.
        job: the job.
        data: whether other data is a difference.
    """
    before, now = record.settings, job.settings
    defaults = _defaults(job.workload)
    changes = []
    if record.version != job.version:
        changes.append(f"version of the workload {record.version}, now {job.version}")
    if data and record.data != job.data:
        changes.append(f"data {record.data}, now {job.data}")
    for name in sorted({*before, *now}):
        if name not in before and now[name] == defaults.get(name, MISSING):
            continue
        old, new = before.get(name, "not there"), now.get(name, "not there")
        if old != new:
            changes.append(f"{name} {old}, now {new}")
    return "; ".join(changes)


def _defaults(workload: object) -> Mapping[str, Any]:
    """The workload's defaults, as JSON gives them back."""
    known: dict[str, Any] = {}
    for field in fields(cast("Any", workload)):
        if field.default is not MISSING:
            known[field.name] = field.default
        elif field.default_factory is not MISSING:
            known[field.name] = field.default_factory()
    plain = {
        name: asdict(value) if hasattr(value, "__dataclass_fields__") else value
        for name, value in known.items()
    }
    return dict(json.loads(json.dumps(plain, default=str)))


def _finite(value: Any) -> Any:
    """The value with numbers that are none as words."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _environment() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name, distribution in DISTRIBUTIONS.items():
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(distribution)
    return {**versions, "platform": f"{platform.system()} {platform.machine()}"}
