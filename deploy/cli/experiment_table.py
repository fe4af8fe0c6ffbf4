"""An experiment's rows as a table: ours beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from entrain.deploy.cli.experiment_figures import ends, figure, signed, spread
from entrain.deploy.report.words import DASH, printable
from entrain.models.experiments.papers import Figure, Published
from entrain.models.experiments.power_law import FEW_SEEDS, PowerLawFit
from entrain.models.experiments.specification import Experiment, Metric
from entrain.models.experiments.summary import Comparison, Row

TO_BASELINE = "to baseline"
# Of the variants at least, however narrow the terminal.
NAME_WIDTH = 12
TITLES = ("runs", "ours", "95 %", "paper", TO_BASELINE)
FAILURE_TITLES = ("failed", "95 %", TO_BASELINE)


def result_table(
    experiment: Experiment,
    budget: str,
    rows: Sequence[Row],
    fit: PowerLawFit | None,
    published: Published,
    diverged: int = 0,
) -> RenderableType:
    """For a terminal: a part a metric, a line a variant; likewise where runs failed.

    ``diverged`` is how many runs of this command did, and left nothing.
    """
    parts: list[RenderableType] = [
        Text(f"{experiment.title} ({experiment.paper}), budget {budget}", style="bold")
    ]
    for name, metric in experiment.metrics.items():
        shown = [row for row in rows if row.metric == name and (row.mean or row.published)]
        if not shown:
            continue
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
        table.add_column(heading(metric), min_width=NAME_WIDTH, overflow="fold")
        for title in TITLES:  # on two lines: the verdicts need the room
            table.add_column(title.replace(" b", "\nb"), justify="right", no_wrap=True)
        table.add_column("", overflow="fold")
        for row in shown:
            table.add_row(*map(Text, _cells(row)))
        if not any(row.published for row in shown):
            del table.columns[1 + TITLES.index("paper")]
        parts += [Text(""), table]
        if any(row.failures for row in shown):
            parts += [Text(""), _failure_table(shown, metric)]
    for remark in notes(experiment, rows, fit, published, diverged):
        parts += [Text(""), Text(printable(remark))]
    return Group(*parts)


def _failure_table(rows: Sequence[Row], metric: Metric) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column(f"{metric.title}: failed", min_width=NAME_WIDTH, overflow="fold")
    for title in FAILURE_TITLES:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        if row.mean is not None:
            runs = f"{row.failures} of {row.mean.n}"
            cells = (row.title, runs, _failure_interval(row), _failure_p(row.comparison) or DASH)
            table.add_row(*map(Text, cells))
    return table


def notes(
    experiment: Experiment,
    rows: Sequence[Row],
    fit: PowerLawFit | None,
    published: Published,
    diverged: int = 0,
) -> list[str]:
    """What must be known to read the table, a paragraph each."""
    failing = [
        f"A run {'below' if metric.better == 'higher' else 'above'} "
        f"{f'{metric.failure:g} {metric.unit}'.rstrip()} counts as failed ({metric.title})."
        for name, metric in experiment.metrics.items()
        if any(row.failures for row in rows if row.metric == name)
    ]
    if failing:
        failing.append(
            "Intervals of failures are Wilson's, of the share of runs; p to the baseline is of "
            "McNemar's exact test, paired by seed and corrected by Holm's method."
        )
    if diverged:
        failing.append(
            f"Runs of this command that diverged (TrainingDiverged): {diverged}. Nothing of them "
            "is stored, and they are counted neither as runs nor as failed."
        )
    source = f"paper: {published.source.strip()}" if published.source else ""
    remarks = (
        law_words(fit),
        " ".join(failing),
        experiment.comment.strip(),
        published.comment.strip(),
        source,
    )
    return [remark for remark in remarks if remark]


def markdown_table(
    experiment: Experiment, rows: Sequence[Row], fit: PowerLawFit | None, published: Published
) -> str:
    """For a README: a line a variant; ours and the paper's for each metric, notes below.

    A metric of which nothing is published has no column for the paper.
    """
    metrics = experiment.metrics
    of_paper = {row.metric for row in rows if row.published is not None}
    failing = {row.metric for row in rows if row.failures}
    head = ["", "runs"]
    for name, metric in metrics.items():
        head += [heading(metric), *(["paper"] if name in of_paper else []), TO_BASELINE]
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)]
    for variant in experiment.variants.values():
        own = {row.metric: row for row in rows if row.variant == variant.name}
        counts = {str(row.mean.n) for row in own.values() if row.mean}
        line = [variant.title, "/".join(sorted(counts)) or "0"]
        for name in metrics:
            row = own[name]
            p = _failure_p(row.comparison) if name in failing else ""
            words = [row.comparison.verdict if row.comparison else "", p and f"failures {p}"]
            said = f" ({'; '.join(filter(None, words))})" if any(words) else ""
            line += [
                f"{_mean(row)}{_failures(row) if name in failing else ''}",
                *([_published(row.published)] if name in of_paper else []),
                f"{_difference(row)}{said}",
            ]
        lines.append(line)
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n\n".join([table, *notes(experiment, rows, fit, published)])


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
        remark = ", too narrow with so few" if fit.seeds < FEW_SEEDS else ""
        between = ends(fit.interval, fit.b)
        interval = f" (95 % {between}, bootstrap over seeds{remark})"
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
        "failures_ci95": list(row.failures_interval) if row.failures_interval else None,
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
        "failures_p": comparison.failures_p,
        "failures_p_holm": comparison.failures_p_holm,
        "verdict": comparison.verdict,
    }


def _cells(row: Row) -> tuple[str, ...]:
    comparison = row.comparison
    return (
        row.title,
        str(row.mean.n) if row.mean else "0",
        _mean(row),
        ends(row.mean.interval, row.mean.mean) if row.mean and row.mean.interval else DASH,
        _published(row.published),
        _difference(row),
        _verdict(comparison),
    )


def _mean(row: Row) -> str:
    return DASH if row.mean is None else spread(row.mean.mean, row.mean.sd)


def _failures(row: Row) -> str:
    if row.mean is None:
        return ""
    return f", {row.failures} of {row.mean.n} failed ({_failure_interval(row)})"


def _failure_interval(row: Row) -> str:
    if row.failures_interval is None:
        return DASH
    low, high = row.failures_interval
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def _failure_p(comparison: Comparison | None) -> str:
    if comparison is None or comparison.failures_p_holm is None:
        return ""
    return _p(comparison.failures_p_holm)


def _published(published: Figure | None) -> str:
    return DASH if published is None else spread(published.mean, published.sd)


def _difference(row: Row) -> str:
    if row.comparison is None or row.mean is None:
        return DASH
    return signed(row.comparison.difference, row.mean.mean)


def _verdict(comparison: Comparison | None) -> str:
    """The verdict, and the p value on which it rests."""
    if comparison is None:
        return ""
    if comparison.verdict_p is None:
        return comparison.verdict
    return f"{comparison.verdict}, {_p(comparison.verdict_p)}"


def heading(metric: Metric) -> str:
    """The metric's title and unit."""
    return f"{metric.title}, {metric.unit}" if metric.unit else metric.title


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p {value:.3f}"
