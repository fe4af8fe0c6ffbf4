"""One self-contained HTML page from results.json: no script, no network, light and dark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment as Templates
from jinja2 import FileSystemLoader, StrictUndefined

from entrain.deploy.files import write_whole
from entrain.deploy.report.charts import (
    BarGroup,
    DotChart,
    accuracy_chart,
    layer_chart,
    memory_chart,
    subset_charts,
)
from entrain.deploy.report.confusions import Confusion, confusions
from entrain.deploy.report.findings import Finding, shown_by, softmax_wins
from entrain.deploy.report.groups import Section, mechanisms, samples_of, sections
from entrain.deploy.report.layer_cycles import layer_cycles
from entrain.deploy.report.quantities import QuantityRow, Tile, quantity_rows, tiles
from entrain.deploy.report.words import listed
from entrain.deploy.results import Environment, Figure, Results


@dataclass(frozen=True)
class SectionView:
    """What the page shows of one task on one board."""

    section: Section
    cpu: str
    tiles: list[Tile]
    findings: list[Finding]
    softmax_wins: list[Finding]
    quantities: list[QuantityRow]
    accuracy: DotChart | None
    subsets: dict[str, DotChart]
    layers: list[BarGroup]
    cycles: list[QuantityRow]
    memory: list[BarGroup]


@dataclass(frozen=True)
class PageView:
    """What the page shows, all of it text and geometry."""

    title: str
    boards: str
    data: str
    stopped: str | None
    mechanisms: list[str]
    sections: list[SectionView]
    confusions: list[Confusion]
    environment: Environment
    models: list[str]
    samples: str
    groupings: list[tuple[str, str | None]]


def write_page(path: Path, results: Results) -> None:
    """Write the page, whole.

    Raises:
        UsageError: the file cannot be written.
    """
    write_whole(path, render_page(results))


def render_page(results: Results) -> str:
    """The page as HTML; everything that comes from ``results`` is escaped."""
    templates = Templates(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("page.html.j2").render(page=_view(results))


def _view(results: Results) -> PageView:
    found = sections(results)
    tasks = list(dict.fromkeys(section.task for section in found))
    boards = list(dict.fromkeys(section.board for section in found))
    data = list(dict.fromkeys(row.data for row in results.results if row.data))
    return PageView(
        title=listed(tasks) or "nothing measured",
        boards=listed(boards),
        data=listed(data),
        stopped=results.stopped,
        mechanisms=mechanisms(results.results),
        sections=[_section_view(section) for section in found],
        confusions=confusions(found),
        environment=results.environment,
        models=_models(results),
        samples=listed(list(dict.fromkeys(map(samples_of, results.results)))),
        groupings=_groupings(results),
    )


def _groupings(results: Results) -> list[tuple[str, str | None]]:
    """What samples there are, with what hangs them together, if anything: clips by speaker."""
    return list(dict.fromkeys((samples_of(row), row.group) for row in results.results))


def _section_view(section: Section) -> SectionView:
    return SectionView(
        section=section,
        cpu=section.rows[0].cpu or "",
        tiles=tiles(section),
        findings=shown_by(section),
        softmax_wins=softmax_wins(section),
        quantities=quantity_rows(section),
        accuracy=accuracy_chart(section),
        subsets=subset_charts(section),
        layers=layer_chart(section),
        cycles=layer_cycles(section),
        memory=memory_chart(section),
    )


def _models(results: Results) -> list[str]:
    """What the modelled figures rest on, each source once, with its board."""
    sources: dict[str, None] = {}
    for row in results.results:
        figures: tuple[Figure | None, ...] = (row.cycles, row.latency_ms, row.energy_uj)
        for figure in figures:
            if figure is not None and figure.kind == "modelled":
                sources[f"{row.board}: {figure.source}"] = None
    return list(sources)
