"""An experiment of the tests' own, in seconds: what stands in ``fitting.toml``, and running it."""

from __future__ import annotations

from pathlib import Path

from commands import Ended, entrain

FILE = """
title = "Fitting"
paper = "a paper, table 1"
workload = "fitting"
baseline = "plain"
seeds = 2
comment = "Read this [first]."
[metrics.hard]
title = "hard"
unit = "%"
better = "higher"
margin = 1.0
[settings]
epochs = 3
[variants.plain]
[variants.steep]
title = "a steep one"
slope = 3.0
[[plots]]
kind = "metric"
y = "hard"
title = "Hard"
"""


def run(*arguments: str) -> Ended:
    return entrain("experiment", "run", "fitting.toml", "--jobs", "1", *arguments)


def change(old: str, new: str) -> None:
    path = Path("fitting.toml")
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
