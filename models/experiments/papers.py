"""Figures of the papers: published/<name>.toml beside the experiment that reproduces them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field

from entrain.deploy.errors import UsageError
from entrain.deploy.toml import place
from entrain.models.experiments.reading import Table, read_table
from entrain.models.experiments.specification import TABLES, Experiment

PUBLISHED = Path(__file__).parent / "published"


class Figure(Table):
    """A published mean.

    Attributes:
        mean: in the metric's unit.
        sd: the standard deviation over seeds; None where the paper gives none.
        seeds: over how many; None where the paper does not say.
    """

    mean: Annotated[float, Field(allow_inf_nan=False)]
    sd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    seeds: Annotated[int, Field(ge=1)] | None = None


class _File(Table):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, dict[str, Figure]]

    source: Annotated[str, Field(min_length=1)]
    comment: str = ""


@dataclass(frozen=True)
class Published:
    """What a paper gives for an experiment.

    Args:
        source: where in the paper, or in its authors' repository.
        comment: what a reader must know of it.
        figures: by variant and metric.
    """

    source: str = ""
    comment: str = ""
    figures: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)

    def figure(self, variant: str, metric: str) -> Figure | None:
        """The published figure, or None where there is none."""
        return self.figures.get(variant, {}).get(metric)


def published_figures(experiment: Experiment, folder: Path | None = None) -> Published:
    """The published figures of an experiment; none where there is no such file.

    Args:
        experiment: the experiment.
        folder: of the files; without it `PUBLISHED`, for experiments that come with Entrain only:
            a file of the user's may have the name of one of them and be another experiment.

    Raises:
        UsageError: the file is wrong, or names a variant or metric that the experiment has not.
    """
    if folder is None:
        if experiment.path.parent != TABLES:
            return Published()
        folder = PUBLISHED
    path = folder / f"{experiment.name}.toml"
    if not path.is_file():
        return Published()
    file = read_table(path, _File)
    for variant, figures in file.__pydantic_extra__.items():
        if variant not in experiment.variants:
            raise UsageError(
                f"the experiment has no variant {variant!r}",
                where=place(path, [variant]),
                remedy=f"its variants: {', '.join(experiment.variants)}",
            )
        for metric in figures:
            if metric not in experiment.metrics:
                raise UsageError(
                    f"the experiment has no metric {metric!r}",
                    where=place(path, [variant, metric]),
                    remedy=f"its metrics: {', '.join(experiment.metrics)}",
                )
    return Published(file.source, file.comment, file.__pydantic_extra__)
