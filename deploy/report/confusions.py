"""Confusion matrices as the report draws them, those that are equal on several boards once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrain.deploy.report.groups import Group, Section
from entrain.deploy.report.words import listed, percent

Matrix = tuple[tuple[int, ...], ...]
# Up to so many classes fit a phone with their numbers; beyond, the shades stand alone.
MOST_NUMBERED = 14


@dataclass(frozen=True)
class ConfusionCell:
    """One count; ``shade`` is 0..10 by its share of the row."""

    count: int
    shade: int
    right: bool


@dataclass(frozen=True)
class Confusion:
    """A matrix with its labels; ``recalls`` has a text a row."""

    title: str
    where: str
    colour: int
    labels: tuple[str, ...]
    rows: tuple[tuple[ConfusionCell, ...], ...]
    recalls: tuple[str, ...]
    numbered: bool


def confusions(sections: list[Section]) -> list[Confusion]:
    """Every mechanism's matrix, its seeds summed up, with the boards that gave the same."""
    boards: dict[tuple[str, str, Matrix], list[str]] = {}
    groups: dict[tuple[str, str, Matrix], Group] = {}
    for section in sections:
        for group in section.groups:
            matrix = _summed(group)
            if matrix is not None:
                key = (section.task, group.mechanism, matrix)
                boards.setdefault(key, []).append(section.board)
                groups[key] = group
    return [_confusion(groups[key], key[2], where) for key, where in boards.items()]


def _summed(group: Group) -> Matrix | None:
    matrices = [np.asarray(row.confusion) for row in group.rows if row.confusion]
    if not matrices or any(matrix.shape != matrices[0].shape for matrix in matrices):
        return None
    return tuple(tuple(int(value) for value in row) for row in np.sum(matrices, axis=0))


def _confusion(group: Group, matrix: Matrix, boards: list[str]) -> Confusion:
    seeds = f", {len(group.rows)} seeds together" if len(group.rows) > 1 else ""
    size = len(matrix)
    return Confusion(
        title=group.mechanism,
        where=f"the same on {listed(boards)}{seeds}" if len(boards) > 1 else f"{boards[0]}{seeds}",
        colour=group.colour,
        labels=group.rows[0].labels or tuple(str(index) for index in range(size)),
        rows=tuple(
            tuple(
                ConfusionCell(value, _shade(value, sum(row)), truth == predicted)
                for predicted, value in enumerate(row)
            )
            for truth, row in enumerate(matrix)
        ),
        recalls=tuple(
            percent(row[index] / sum(row)) if sum(row) else "none"
            for index, row in enumerate(matrix)
        ),
        numbered=size <= MOST_NUMBERED,
    )


def _shade(value: int, total: int) -> int:
    """0 for none; else 1..10, so that a single one is seen."""
    return 0 if value == 0 else max(1, round(10 * value / total))
