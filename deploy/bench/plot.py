"""The cost of attention cores over the length of the sequence, as a drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from entrain.deploy.files import writing_whole


def draw_lengths(rows: list[dict[str, Any]], path: Path) -> None:
    """One panel a board, one line a mechanism, both axes logarithmic: a slope is an exponent.

    Args:
        rows: of the bench, with ``board``, ``name``, ``tokens`` and ``instructions``.
        path: an .svg or .png file, written whole.

    Raises:
        UsageError: the file cannot be written there.
    """
    from matplotlib.figure import Figure

    boards = list(dict.fromkeys(row["board"] for row in rows))
    figure = Figure(figsize=(5.2 * len(boards), 4.2), layout="constrained")
    panels = figure.subplots(1, len(boards), squeeze=False, sharey=True)[0]
    for panel, board in zip(panels, boards, strict=True):
        mine = [row for row in rows if row["board"] == board]
        for name in dict.fromkeys(row["name"] for row in mine):
            points = sorted((r["tokens"], r["instructions"]) for r in mine if r["name"] == name)
            tokens, instructions = zip(*points, strict=True)
            label = name.removeprefix("attention core ")
            panel.loglog(tokens, instructions, marker="o", label=label)
        panel.set_title(board)
        panel.set_xlabel("tokens")
        panel.set_xticks(sorted({row["tokens"] for row in mine}))
        panel.minorticks_off()
        panel.xaxis.set_major_formatter("{x:.0f}")
        panel.grid(visible=True, alpha=0.3)
    panels[0].set_ylabel("instructions of the attention core, counted")
    panels[-1].legend(loc="upper left", fontsize="small")
    with writing_whole(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".") or "svg")
