"""The experiments there are, for a person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from entrain.models.experiments.specification import Experiment


def list_table(experiments: Sequence[Experiment]) -> RenderableType:
    """The experiments, two lines each: what it is, and below it what it reproduces and runs."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for one in experiments:
        runs = f"{len(one.variants)} variants of {one.workload}, budget {' or '.join(one.budgets)}"
        table.add_row(one.name, Text(one.title).append(f"\n{one.paper}; {runs}", style="dim"))
    return table
