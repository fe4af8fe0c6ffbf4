"""results.json as a table for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from entrain.deploy.report.words import (
    DASH,
    bounds,
    count,
    memory_size,
    percent,
    percent_range,
    printable,
    significant,
)
from entrain.deploy.results import Figure, Result, Results

# Column titles and widths: together they fit a terminal of 80 columns, whatever the run is called.
COLUMNS = (("accuracy", 22), ("instructions", 13), ("time, energy", 26), ("memory", 15))


def results_table(results: Results) -> RenderableType:
    """Each (run, board): accuracy with its 95 % interval, cost, memory.

    Time and energy carry the word for how they came about. What devices and files say is shown as
    plain text, never as markup.
    """
    parts: list[RenderableType] = [_line(*(Text(title, style="bold") for title, _ in COLUMNS))]
    for row in results.results:
        parts.append(_title(row))
        parts.append(_line(_accuracy(row), _instructions(row), _costs(row), _memory(row)))
    if results.stopped:
        parts.append(Text(f"incomplete: {printable(results.stopped)}", style="bold"))
    return Group(*parts)


def _line(*cells: Text) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    for _, width in COLUMNS:
        table.add_column(width=width, overflow="fold")
    table.add_row(*cells)
    return table


def _title(row: Result) -> Text:
    text = Text(f"\n{printable(row.run)}", style="bold")
    text.append(printable(f" on {row.board}, {row.mechanism}"), style="not bold")
    return text if row.complete else text.append(", incomplete")


def _accuracy(row: Result) -> Text:
    found = row.accuracy
    if found is None:
        return Text(DASH)
    mismatches = DASH if row.mismatches is None else count(row.mismatches)
    lines = (
        f"{_share(found.device)} device",
        f"  {percent_range(found.ci95)} (95 %)" if found.ci95 else "",
        f"{_share(found.float32)} float",
        f"{_share(found.balanced)} balanced",
        *(
            f"{_share(one.device)} {name}\n  {_share(one.float32)} float"
            for name, one in (row.subsets or {}).items()
        ),
        f"{mismatches} mismatches in {count(found.n)}",
    )
    return Text("\n".join(line for line in lines if line))


def _instructions(row: Result) -> Text:
    return Text(DASH if row.instructions is None else f"{count(row.instructions)}\ncounted")


def _costs(row: Result) -> Text:
    lines = (_cost(row.latency_ms, "ms"), _cost(row.energy_uj, "\N{MICRO SIGN}J"))
    return Text("\n".join(line for line in lines if line) or DASH)


def _cost(figure: Figure | None, unit: str) -> str:
    if figure is None:
        return ""
    volts = f"{figure.volts:g} V" if figure.volts else ""
    conditions = ", ".join(part for part in (bounds(figure), volts) if part)
    below = f"\n  {conditions}" if conditions else ""
    return f"{significant(figure.value)} {unit} {figure.kind}{below}"


def _memory(row: Result) -> Text:
    sizes = (("flash", row.flash_bytes), ("RAM", row.ram_bytes), ("arena", row.arena_bytes))
    lines = [f"{memory_size(size)} {name}" for name, size in sizes if size is not None]
    return Text("\n".join(lines) or DASH)


def _share(fraction: float | None) -> str:
    return DASH if fraction is None else percent(fraction)
