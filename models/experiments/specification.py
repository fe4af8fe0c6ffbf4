"""An experiment as its file describes it: tables/<name>.toml, a table or figure of the papers."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from entrain.deploy.errors import UsageError, concerning
from entrain.deploy.toml import place
from entrain.models.experiments.reading import Table, described, read_table
from entrain.models.experiments.workloads import WORKLOADS, find_workload

if TYPE_CHECKING:
    from entrain.models.experiments.workload import Workload

Text = Annotated[str, Field(min_length=1)]
# Names of variants and budgets become names of files.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,79}$")]
Count = Annotated[int, Field(ge=1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Settings = Mapping[str, JsonValue]

TABLES = Path(__file__).parent / "tables"
DEFAULT_BUDGET = "small"


class Metric(Table):
    """A column of the table.

    Attributes:
        title: for people.
        unit: as the workload gives the figure: ``%`` for accuracies.
        better: whether ``higher`` or ``lower`` figures are better.
        margin: a difference below it counts as equal; None where nothing is called equal.
        failure: a run with a worse figure counts as failed; None where no run does.
    """

    title: Text
    unit: str = ""
    better: Literal["higher", "lower"]
    margin: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    failure: Finite | None = None


class PowerLaw(Table):
    """A fit of the gap to the baseline over d_osc.

    Attributes:
        metric: whose gap.
        variants: the points, one d_osc each.
    """

    metric: Text
    variants: Annotated[list[str], Field(min_length=2)]


class Plot(Table):
    """A picture: bars of a metric by variant, or a curve of the outcome by variant."""

    kind: Literal["metric", "curve"]
    y: Text
    title: Text
    x_title: str = ""


class _Settings(Table):
    """A table whose further keys are fields of the workload."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue]

    @property
    def settings(self) -> Settings:
        return self.__pydantic_extra__


class _BudgetTable(_Settings):
    seeds: Count | None = None


class _VariantTable(_Settings):
    title: Text | None = None
    baseline: Text | None = None


class _File(Table):
    title: Text
    paper: Text
    workload: Text
    baseline: Text
    seeds: Count
    comment: str = ""
    metrics: Annotated[dict[str, Metric], Field(min_length=1)]
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    budgets: dict[Name, _BudgetTable] = Field(default_factory=dict)
    variants: Annotated[dict[Name, _VariantTable], Field(min_length=1)]
    power_law: PowerLaw | None = None
    plots: list[Plot] = Field(default_factory=list)


@dataclass(frozen=True)
class Budget:
    """How much computation: settings over those of the experiment, and how many seeds."""

    name: str
    seeds: int
    settings: Settings


@dataclass(frozen=True)
class Variant:
    """A row of the table: settings over those of the experiment and the budget.

    Args:
        name: by which files and options call it.
        title: for people.
        baseline: the variant it is compared with; itself, where it is the baseline.
        settings: fields of the workload.
    """

    name: str
    title: str
    baseline: str
    settings: Settings


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the papers, to be run again.

    Args:
        name: that of the file.
        path: the file.
        title: for people.
        paper: what it reproduces.
        workload: a name of `WORKLOADS`.
        baseline: the variant that the others are compared with unless they name another.
        seeds: how many, unless a budget says otherwise.
        comment: what a reader of the table must know.
        metrics: by name, in the table's order.
        settings: fields of the workload, for all variants.
        budgets: by name; ``small`` is always there.
        variants: by name, in the table's order.
        power_law: what to fit, or None.
        plots: what to draw.
    """

    name: str
    path: Path
    title: str
    paper: str
    workload: str
    baseline: str
    seeds: int
    comment: str
    metrics: Mapping[str, Metric]
    settings: Settings
    budgets: Mapping[str, Budget]
    variants: Mapping[str, Variant]
    power_law: PowerLaw | None
    plots: tuple[Plot, ...]

    def budget(self, name: str) -> Budget:
        """The budget called ``name``.

        Raises:
            UsageError: the experiment has none of that name.
        """
        if name not in self.budgets:
            raise UsageError(
                f"the experiment {self.name!r} has no budget {name!r}",
                where=str(self.path),
                remedy=f"its budgets: {', '.join(self.budgets)}",
            )
        return self.budgets[name]


def experiment_names() -> list[str]:
    """The names of the experiments that come with Entrain, in alphabetical order."""
    return sorted(path.stem for path in TABLES.glob("*.toml"))


def find_experiment(name: str) -> Experiment:
    """The experiment called ``name``, or that of the TOML file ``name``.

    Raises:
        UsageError: there is none (the error lists those there are), or its file is wrong.
    """
    if name.endswith(".toml"):
        return read_experiment(Path(name))
    known = experiment_names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        remedy = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(
            f"there is no experiment {name!r}",
            remedy=f"{remedy}experiments there are: {', '.join(known) or 'none'}",
        )
    return read_experiment(TABLES / f"{name}.toml")


def read_experiment(path: Path) -> Experiment:
    """The experiment that the file describes; its settings are checked by `build_workload`.

    Raises:
        UsageError: the file cannot be read, is not TOML, has an unknown key, lacks one, names a
            workload or variant that does not exist, or has a value of the wrong type.
    """
    file = read_table(path, _File)
    _check_names(file, path)
    budgets = {
        name: Budget(name, table.seeds or file.seeds, table.settings)
        for name, table in {DEFAULT_BUDGET: _BudgetTable.model_validate({}), **file.budgets}.items()
    }
    variants = {
        name: Variant(name, table.title or name, table.baseline or file.baseline, table.settings)
        for name, table in file.variants.items()
    }
    return Experiment(
        name=path.stem,
        path=path,
        title=file.title,
        paper=file.paper,
        workload=file.workload,
        baseline=file.baseline,
        seeds=file.seeds,
        comment=file.comment,
        metrics=file.metrics,
        settings=file.settings,
        budgets=budgets,
        variants=variants,
        power_law=file.power_law,
        plots=tuple(file.plots),
    )


def _check_names(file: _File, path: Path) -> None:
    """Every name in the file must be that of something that is there."""
    law = file.power_law
    named: list[tuple[str, list[str], Mapping[str, object]]] = [
        (file.workload, ["workload"], WORKLOADS),
        (file.baseline, ["baseline"], file.variants),
    ]
    for name, variant in file.variants.items():
        if variant.baseline is not None:
            named.append((variant.baseline, ["variants", name, "baseline"], file.variants))
    if law is not None:
        named.append((law.metric, ["power_law", "metric"], file.metrics))
        named += [(name, ["power_law", "variants"], file.variants) for name in law.variants]
    for plot in file.plots:
        if plot.kind == "metric":
            named.append((plot.y, ["plots", "y"], file.metrics))
    for name, keys, known in named:
        if name not in known:
            raise UsageError(
                f"{'.'.join(keys)}: there is no {name!r}",
                where=place(path, keys),
                remedy=f"there are: {', '.join(known)}",
            )


def build_workload(experiment: Experiment, budget: Budget, variant: Variant) -> Workload:
    """The task with its settings: the experiment's, over them the budget's, then the variant's.

    Raises:
        UsageError: a setting is no field of the workload, has the wrong type or a value that makes
            no sense; with file, line and key.
    """
    with concerning(place(experiment.path, ["workload"])):
        kind = find_workload(experiment.workload)
    layers = (
        (["variants", variant.name], variant.settings),
        (["budgets", budget.name], budget.settings),
        (["settings"], experiment.settings),
    )
    known = [field.name for field in fields(cast("type", kind)) if field.init]
    merged: dict[str, JsonValue] = {}
    origin: dict[str, list[str]] = {}
    for table, settings in reversed(layers):
        for key, value in settings.items():
            if key not in known:
                raise UsageError(
                    f"unknown key {'.'.join([*table, key])!r}",
                    where=place(experiment.path, [*table, key]),
                    remedy=f"settings of the workload {experiment.workload}: {', '.join(known)}",
                )
            merged[key], origin[key] = value, table
    with concerning(place(experiment.path, ["variants", variant.name])):
        try:
            # As JSON: strict about types, and yet a list may become a tuple.
            return TypeAdapter(kind).validate_json(json.dumps(merged), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            table = origin.get(str(first["loc"][0]), []) if first["loc"] else []
            raise described(first, experiment.path, table) from error
