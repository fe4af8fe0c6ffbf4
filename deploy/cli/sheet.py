"""A table that a command prints: numbers and headings whole, names as long as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
SHORTEST_NAME = 12
GAP = 2  # spaces between two columns


@dataclass(frozen=True)
class Column:
    """A column that is never narrower than what stands in it.

    Args:
        title: its heading.
    """

    justify: ClassVar[Literal["left", "right"]] = "left"
    title: str

    def least(self, cells: Sequence[str]) -> int:
        """How narrow it may become."""
        return _widest([self.title, *cells])

    def shown(self, cell: str, _width: int) -> str:
        """What is shown of a cell."""
        return cell


@dataclass(frozen=True)
class Number(Column):
    """A column of numbers."""

    justify = "right"


@dataclass(frozen=True)
class Words(Column):
    """A column of a few words, on several lines where there is no room."""

    def least(self, cells: Sequence[str]) -> int:
        """The longest word."""
        return _widest([word for text in (self.title, *cells) for word in text.split()])


@dataclass(frozen=True)
class Name(Column):
    """A column of names; both ends of a long one are shown, for either may be what tells it."""

    def least(self, cells: Sequence[str]) -> int:
        """Enough of a name to know it by."""
        return max(_widest([self.title]), min(SHORTEST_NAME, _widest(cells)))

    def shown(self, cell: str, width: int) -> str:
        """The name, without its middle where it is too long."""
        if len(cell) <= width:
            return cell
        end = (width - 1) // 2
        return f"{cell[: width - 1 - end]}{ELLIPSIS}{cell[len(cell) - end :]}"


@dataclass(frozen=True)
class Sheet:
    """A table without lines, within the terminal's width; in a pipe it is as wide as it needs.

    Args:
        columns: from left to right.
        rows: as many cells each, plain text.
        title: above it, if it has one.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    title: str | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Its lines; wider than the console only where not even the narrowest fits."""
        widths = self._widths(options.max_width if console.is_terminal else inf)
        if self.title is not None:
            yield Text(self.title, style="italic")
        table = Table(box=None, pad_edge=False, padding=(0, GAP // 2), header_style="bold")
        for column, width in zip(self.columns, widths, strict=True):
            table.add_column(Text(column.title), justify=column.justify, width=width)
        for row in self.rows:
            cells = zip(self.columns, row, widths, strict=True)
            table.add_row(*(Text(column.shown(cell, width)) for column, cell, width in cells))
        yield from console.render(table, options.update(width=_with_gaps(widths)))

    def _widths(self, most: float) -> list[int]:
        """Of each column: the widest that can give way does so first."""
        cells = [[row[place] for row in self.rows] for place in range(len(self.columns))]
        pairs = list(zip(self.columns, cells, strict=True))
        widths = [_widest([column.title, *texts]) for column, texts in pairs]
        least = [column.least(texts) for column, texts in pairs]
        while _with_gaps(widths) > most:
            wide = [place for place, width in enumerate(widths) if width > least[place]]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1
        return widths


def _widest(texts: Sequence[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _with_gaps(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)
