"""An experiment's rows as a table: ours beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from entrain.deploy.report.words import DASH, MINUS, printable
from entrain.models.experiments.papers import Figure, Published
from entrain.models.experiments.power_law import PowerLawFit
from entrain.models.experiments.specification import Experiment, Metric
from entrain.models.experiments.summary import Comparison, Row

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
TITLES = ("runs", "ours", "95 %", "paper", "difference")


def result_table(
    experiment: Experiment,
    budget: str,
    rows: Sequence[Row],
    fit: PowerLawFit | None,
    published: Published,
) -> RenderableType:
    """For a terminal: a part a metric, a line a variant."""
    parts: list[RenderableType] = [
        Text(f"{experiment.title} ({experiment.paper}), budget {budget}", style="bold")
    ]
    for name, metric in experiment.metrics.items():
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        table.add_column(heading(metric))
        for title in TITLES:
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("")
        for row in rows:
            if row.metric == name and (row.mean or row.published):
                table.add_row(*map(Text, _cells(row, metric)))
        parts += [Text(""), table]
    for remark in (law_words(fit), experiment.comment, published.comment):
        if remark:
            parts += [Text(""), Text(printable(remark.strip()))]
    if published.source:
        parts.append(Text(f"paper: {printable(published.source)}", style="dim"))
    return Group(*parts)


def markdown_table(experiment: Experiment, rows: Sequence[Row], fit: PowerLawFit | None) -> str:
    """For a README: a line a variant; ours and the paper's for each metric."""
    metrics = experiment.metrics
    head = ["", "runs"]
    for metric in metrics.values():
        head += [heading(metric), "paper", "difference"]
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)]
    for variant in experiment.variants.values():
        own = {row.metric: row for row in rows if row.variant == variant.name}
        counts = {str(row.mean.n) for row in own.values() if row.mean}
        line = [variant.title, "/".join(sorted(counts)) or "0"]
        for name in metrics:
            row = own[name]
            failures = f", {row.failures} failed" if row.failures else ""
            said = f" ({row.comparison.verdict})" if row.comparison else ""
            line += [
                f"{_mean(row)}{failures}",
                _published(row.published),
                f"{_difference(row.comparison)}{said}",
            ]
        lines.append(line)
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{table}\n\n{law_words(fit)}" if fit else table


def law_words(fit: PowerLawFit | None) -> str:
    """The power law in a sentence; nothing where there is none."""
    if fit is None:
        return ""
    gaps = ", ".join(f"{figure(point.gap)} at {point.d_osc}" for point in fit.points)
    words = f"Gap in {fit.metric} to the baseline by d_osc ({fit.seeds} seeds): {gaps}."
    if fit.b is None or fit.c is None:
        return f"{words} Fewer than two gaps are positive: there is no power law to fit."
    interval = ""
    if fit.interval is not None:
        interval = f" (95 % {' to '.join(map(figure, fit.interval))}, bootstrap over seeds)"
    words += f" Fitted: {figure(fit.c)} d^-b with b = {figure(fit.b)}{interval}."
    if fit.left_out:
        words += f" Left out, the gap is not positive: {', '.join(fit.left_out)}."
    return words


def values(rows: Sequence[Row], fit: PowerLawFit | None) -> list[dict[str, object]]:
    """For ``--json``: an object a variant and metric, and with a power law one for its slope."""
    return [*map(_value, rows), *([_law_value(fit)] if fit else [])]


def _law_value(fit: PowerLawFit) -> dict[str, object]:
    return {
        "variant": "power law",
        "metric": f"{fit.metric} gap exponent",
        "n_seeds": fit.seeds,
        "mean": fit.b,
        "sd": None,
        "ci95": list(fit.interval) if fit.interval else None,
        "published": None,
        "c": fit.c,
        "left_out": list(fit.left_out),
        "unusable_resamples": fit.unusable,
        "gaps": [
            {"variant": point.variant, "d_osc": point.d_osc, "gap": point.gap}
            for point in fit.points
        ],
    }


def _value(row: Row) -> dict[str, object]:
    mean, comparison, published = row.mean, row.comparison, row.published
    return {
        "variant": row.variant,
        "metric": row.metric,
        "n_seeds": mean.n if mean else 0,
        "mean": mean.mean if mean else None,
        "sd": mean.sd if mean else None,
        "ci95": list(mean.interval) if mean and mean.interval else None,
        "published": published.mean if published else None,
        "published_sd": published.sd if published else None,
        "published_seeds": published.seeds if published else None,
        "to_published": row.to_published,
        "failures": row.failures,
        "values": {str(seed): value for seed, value in row.values.items()},
        "seconds": row.seconds,
        "comparison": None if comparison is None else _comparison(comparison),
    }


def _comparison(comparison: Comparison) -> Mapping[str, object]:
    return {
        "baseline": comparison.baseline,
        "n": comparison.n,
        "difference": comparison.difference,
        "ci95": list(comparison.interval) if comparison.interval else None,
        "t_p": comparison.t_p,
        "t_p_holm": comparison.t_p_holm,
        "wilcoxon_p": comparison.wilcoxon_p,
        "wilcoxon_p_holm": comparison.wilcoxon_p_holm,
        "equivalence_p": comparison.equivalence_p,
        "verdict": comparison.verdict,
    }


def _cells(row: Row, metric: Metric) -> tuple[str, ...]:
    comparison = row.comparison
    runs = str(row.mean.n) if row.mean else "0"
    if metric.failure is not None and row.failures:
        runs += f", {row.failures} failed"
    return (
        row.title,
        runs,
        _mean(row),
        " to ".join(map(figure, row.mean.interval)) if row.mean and row.mean.interval else DASH,
        _published(row.published),
        _difference(comparison),
        _verdict(comparison),
    )


def _mean(row: Row) -> str:
    if row.mean is None:
        return DASH
    spread = f" {PLUS_MINUS} {figure(row.mean.sd)}" if row.mean.sd is not None else ""
    return f"{figure(row.mean.mean)}{spread}"


def _published(published: Figure | None) -> str:
    if published is None:
        return DASH
    spread = f" {PLUS_MINUS} {figure(published.sd)}" if published.sd is not None else ""
    return f"{figure(published.mean)}{spread}"


def _difference(comparison: Comparison | None) -> str:
    return DASH if comparison is None else signed(comparison.difference)


def _verdict(comparison: Comparison | None) -> str:
    """The verdict, and the p value of no difference that stands behind it."""
    if comparison is None:
        return ""
    if comparison.t_p_holm is None:
        return comparison.verdict
    return f"{comparison.verdict}, {_p(comparison.t_p_holm)}"


def heading(metric: Metric) -> str:
    """The metric's title and unit."""
    return f"{metric.title}, {metric.unit}" if metric.unit else metric.title


def figure(value: float) -> str:
    """Two decimals, more where the number is small, none where it is large.

    As ``93.10``, ``0.0042``, ``48,216``.
    """
    if value != 0 and abs(value) < 0.1:
        return f"{value:.2g}".replace("-", MINUS)
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace("-", MINUS)
    return f"{value:,.2f}".replace("-", MINUS)


def signed(value: float) -> str:
    """A difference with its sign."""
    return f"+{figure(value)}" if value > 0 else figure(value)


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p {value:.3f}"
