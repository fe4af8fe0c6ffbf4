"""The table of modelled cycles: a row a layer, a column a mechanism."""

from __future__ import annotations

from entrain.deploy.report.charts import merged
from entrain.deploy.report.groups import Group, Section
from entrain.deploy.report.quantities import ABSENT, Cell, QuantityRow
from entrain.deploy.report.words import count, count_range
from entrain.deploy.results import Kind


def layer_cycles(section: Section) -> list[QuantityRow]:
    """Cycles by layer with their bounds, each mechanism's first seed's, in the network's order."""
    names = merged([[layer.name for layer in group.rows[0].layers] for group in section.groups])
    kind = next((row.cycles.kind for row in section.rows if row.cycles), None)
    if kind is None:
        return []
    rows = [_row(name, kind, section) for name in names]
    return [row for row in rows if any(cell != ABSENT for cell in row.cells)]


def _row(name: str, kind: Kind, section: Section) -> QuantityRow:
    return QuantityRow(name, kind, tuple(_cell(name, group) for group in section.groups))


def _cell(name: str, group: Group) -> Cell:
    for layer in group.rows[0].layers:
        if layer.name == name and layer.cycles is not None:
            detail = count_range(layer.cycles_bounds) if layer.cycles_bounds else ""
            return Cell(count(layer.cycles), detail)
    return ABSENT
