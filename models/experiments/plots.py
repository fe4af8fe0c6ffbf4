"""An experiment's plots: a metric by variant, curves by variant, the power law.

The colours are those of the page that compares devices. Matplotlib is imported when there is
something to draw, and draws to files only.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from entrain.deploy.files import write_whole
from entrain.models.experiments.power_law import PowerLawFit
from entrain.models.experiments.specification import Experiment, Plot
from entrain.models.experiments.store import Record
from entrain.models.experiments.summary import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 8.0, 4.5  # inches
ROW_HEIGHT = 0.22
FEW_POINTS = 30
LINES = ("-", "--", ":", "-.")
FORMATS = ("png", "svg")
DOTS_PER_INCH = 150
COLOURS = (
    "#3468b0", "#c9571f", "#1b8468", "#99458f", "#857312",
    "#0d7f96", "#b0356b", "#5d6b1d", "#7a4cc0", "#777c82",
)  # fmt: skip
INK, QUIET, LINE = "#1c1e21", "#5f6368", "#e0ded8"
STYLE: Any = {  # matplotlib's type of it names every key
    "axes.edgecolor": LINE,
    "axes.grid": True,
    "axes.grid.axis": "both",
    "axes.labelcolor": QUIET,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "font.size": 9,
    "grid.color": LINE,
    "legend.frameon": False,
    "svg.hashsalt": "entrain",  # the same figures, the same file
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
}


@dataclass(frozen=True)
class Curve:
    """A variant's curve: the mean over seeds, and its standard deviation where there are more.

    Args:
        title: the variant's, for people.
        mean, sd: [points], as many as the shortest curve has.
    """

    title: str
    mean: tuple[float, ...]
    sd: tuple[float, ...]


@dataclass(frozen=True)
class _Picture:
    name: str
    title: str
    paint: Callable[[Axes], None]
    height: float = HEIGHT


def curves_of(experiment: Experiment, records: Sequence[Record], name: str) -> list[Curve]:
    """Curve ``name`` of every variant that has it, in the file's order."""
    curves = []
    for variant in experiment.variants.values():
        found = [
            record.curves[name]
            for record in records
            if record.variant == variant.name and record.curves.get(name)
        ]
        if found:
            points = np.array([curve[: min(map(len, found))] for curve in found])
            mean, sd = points.mean(axis=0), points.std(axis=0, ddof=1 if len(found) > 1 else 0)
            curves.append(Curve(variant.title, tuple(mean.tolist()), tuple(sd.tolist())))
    return curves


def draw(
    experiment: Experiment,
    records: Sequence[Record],
    rows: Sequence[Row],
    fit: PowerLawFit | None,
    folder: Path,
) -> list[Path]:
    """Draw what the experiment's file asks for, as PNG and SVG; what has no data yet is left out.

    Returns:
        The files written, ``plot-<y>.png`` and so on.

    Raises:
        UsageError: a file cannot be written.
    """
    pictures = [_plot(experiment, records, rows, plot) for plot in experiment.plots]
    pictures.append(_power_law(experiment, fit))
    present = [picture for picture in pictures if picture is not None]
    if not present:
        return []
    import matplotlib as mpl
    from matplotlib.figure import Figure

    written: list[Path] = []
    with mpl.rc_context(STYLE):
        for picture in present:
            figure = Figure(figsize=(WIDTH, picture.height), layout="constrained")
            axes = figure.add_subplot()
            axes.set_axisbelow(True)
            axes.set_title(picture.title)
            picture.paint(axes)
            for kind in FORMATS:
                path = folder / f"plot-{picture.name}.{kind}"
                write_whole(path, _bytes(figure, kind))
                written.append(path)
    return written


def _plot(
    experiment: Experiment, records: Sequence[Record], rows: Sequence[Row], plot: Plot
) -> _Picture | None:
    name = re.sub(r"[^A-Za-z0-9._-]", "_", plot.y)
    if plot.kind == "curve":
        curves = curves_of(experiment, records, plot.y)
        paint: Callable[[Axes], None] = partial(
            _paint_curves, curves=curves, x_title=plot.x_title, y_title=plot.y
        )
        height = max(HEIGHT, 1.5 + ROW_HEIGHT * len(curves))
        return _Picture(f"curve-{name}", plot.title, paint, height) if curves else None
    metric = experiment.metrics[plot.y]
    shown = [row for row in rows if row.metric == plot.y and row.mean is not None]
    unit = f"{metric.title}, {metric.unit}" if metric.unit else metric.title
    means = partial(_paint_means, rows=shown, x_title=unit)
    height = max(HEIGHT, 1.5 + ROW_HEIGHT * len(shown))
    return _Picture(name, plot.title, means, height) if shown else None


def _power_law(experiment: Experiment, fit: PowerLawFit | None) -> _Picture | None:
    if fit is None or not any(point.gap > 0 for point in fit.points):
        return None
    title = f"{experiment.metrics[fit.metric].title}: gap to the baseline"
    return _Picture("power-law", title, partial(_paint_power_law, fit=fit))


def _paint_means(axes: Axes, rows: Sequence[Row], x_title: str) -> None:
    """A dot a variant with its 95 % interval; the paper's figure as an open dot.

    Dots, not bars: figures that lie close together need an axis that does not begin at 0.
    """
    for place, row in enumerate(rows):
        assert row.mean is not None  # only those are given
        mean = row.mean.mean
        low, high = row.mean.interval or (mean, mean)
        whiskers = [[mean - low], [high - mean]]
        axes.errorbar(mean, place, xerr=whiskers, fmt="o", color=COLOURS[0], capsize=2)
        if row.published is not None:
            axes.plot(row.published.mean, place, "o", markerfacecolor="none", color=COLOURS[1])
    axes.set_yticks(range(len(rows)), [row.title for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"{x_title} (dots: ours, 95 % over seeds; open dots: the paper)")


def _paint_curves(axes: Axes, curves: Sequence[Curve], x_title: str, y_title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    for index, curve in enumerate(curves):
        x = np.arange(1, len(curve.mean) + 1)
        mean, sd = np.array(curve.mean), np.array(curve.sd)
        colour, line = COLOURS[index % len(COLOURS)], LINES[index // len(COLOURS) % len(LINES)]
        marker = "o" if len(x) <= FEW_POINTS else ""
        axes.plot(x, mean, color=colour, linestyle=line, marker=marker, label=curve.title)
        axes.fill_between(x, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))  # epochs and layers are whole
    axes.set_xlabel(x_title)
    axes.set_ylabel(y_title)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))


def _paint_power_law(axes: Axes, fit: PowerLawFit) -> None:
    points = [point for point in fit.points if point.gap > 0]
    axes.loglog([point.d_osc for point in points], [point.gap for point in points], "o",
                color=COLOURS[0])  # fmt: skip
    if fit.b is not None and fit.c is not None:
        ends = np.array([points[0].d_osc, points[-1].d_osc], dtype=np.float64)
        interval = f" ({fit.interval[0]:.2f} to {fit.interval[1]:.2f})" if fit.interval else ""
        label = f"{fit.c:.3g} $d^{{-{fit.b:.2f}}}${interval}"
        axes.loglog(ends, fit.c * ends**-fit.b, color=COLOURS[1], label=label)
        axes.legend()
    axes.set_xlabel("d_osc")
    axes.set_ylabel(f"gap in {fit.metric}")


def _bytes(figure: Figure, kind: str) -> bytes:
    content = io.BytesIO()
    # Without a date, the same figures give the same file.
    metadata = {"Date": None} if kind == "svg" else {}
    figure.savefig(content, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
    return content.getvalue()
