"""The plots an experiment asks for are drawn from what is there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from entrain.models.experiments.papers import Published
from entrain.models.experiments.plots import curves_of, draw
from entrain.models.experiments.power_law import fit_power_law
from entrain.models.experiments.specification import Experiment, read_experiment
from entrain.models.experiments.store import Record
from entrain.models.experiments.summary import summarise
from entrain.models.experiments.workloads import WORKLOADS

FILE = """
title = "Two"
paper = "a paper"
workload = "fitting"
baseline = "plain"
seeds = 2
[metrics.hard]
title = "hard"
better = "higher"
[variants.plain]
[variants.steep]
title = "a <steep> one"
[[plots]]
kind = "metric"
y = "hard"
title = "Hard by variant"
[[plots]]
kind = "curve"
y = "losses"
title = "Loss"
x_title = "epoch"
"""


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    monkeypatch.setitem(WORKLOADS, "fitting", "fitting_workload:Fitting")
    path = tmp_path / "two.toml"
    path.write_text(FILE)
    return read_experiment(path)


def record(variant: str, seed: int, curve: tuple[float, ...]) -> Record:
    metrics, curves = {"hard": 90.0 + seed}, {"losses": curve}
    return Record("two", "small", variant, seed, "", 1, {}, "", metrics, curves, 1.0, "", {})


KEPT = [record("plain", 0, (3.0, 2.0, 1.0)), record("plain", 1, (5.0, 4.0))]


def test_a_curve_is_the_mean_over_seeds_as_far_as_all_reach(experiment: Experiment) -> None:
    (curve,) = curves_of(experiment, KEPT, "losses")
    assert (curve.title, curve.mean) == ("plain", (4.0, 3.0))
    assert curve.sd == pytest.approx((2**0.5, 2**0.5))


def test_each_plot_is_a_png_and_an_svg_and_drawn_alike_each_time(
    experiment: Experiment, tmp_path: Path
) -> None:
    kept = [*KEPT, record("steep", 0, (1.0, 1.0))]
    law = fit_power_law("hard", {"a": 2, "b": 4}, {"a": np.ones(2), "b": np.ones(2) / 2})
    rows = summarise(experiment, kept, Published())
    written = draw(experiment, kept, rows, law, tmp_path)
    names = {path.name for path in written}
    assert names == {
        f"plot-{name}.{kind}"
        for name in ("hard", "curve-losses", "power-law")
        for kind in ("png", "svg")
    }
    with Image.open(tmp_path / "plot-hard.png") as picture:
        assert picture.width > 1000
        assert len(picture.convert("RGB").getcolors(picture.width * picture.height) or []) > 10
    before = {path: path.read_bytes() for path in written}
    draw(experiment, kept, rows, law, tmp_path)
    assert {path: path.read_bytes() for path in written} == before


def test_what_has_no_data_is_not_drawn(experiment: Experiment, tmp_path: Path) -> None:
    rows = summarise(experiment, [], Published())
    assert draw(experiment, [], rows, None, tmp_path) == []
