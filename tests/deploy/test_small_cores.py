"""Cores without floats and DSP run the same models to the same bits, to the end of the road."""

from __future__ import annotations

import shutil

import pytest

from entrain.deploy.boards import boards
from entrain.deploy.check import ERROR, expected_instructions
from entrain.deploy.elf import instruction_set
from entrain.deploy.results_file import read_results
from entrain.deploy.runs import Run

SMALL = ("mps2-an385", "mps2-an385-m0")


@pytest.fixture(scope="module")
def compared(walked, tmp_path_factory):
    """The runs of the road on the small cores: how the command ended, and its folder."""
    runs_dir = tmp_path_factory.mktemp("small") / "runs"
    shutil.copytree(walked.runs_dir, runs_dir, ignore=shutil.ignore_patterns("build"))
    road = type(walked)(walked.data, runs_dir, walked.compared)
    return road.compare("small", "--boards", ",".join(SMALL)), runs_dir / "compare-small"


def test_every_core_answers_as_this_machine_does(compared):
    ended, folder = compared
    assert ended.code == 0, ended.err
    rows = read_results(folder / "results.json").results
    assert [row.board for row in rows] == [*SMALL, *SMALL]
    assert [row.cpu for row in rows] == [boards()[row.board].cpu for row in rows]
    assert all(row.complete and row.mismatches == 0 and row.accuracy.n == 6 for row in rows)


def test_their_instructions_are_counted(compared, walked):
    _, folder = compared
    small = {
        (row.attention, row.board): row for row in read_results(folder / "results.json").results
    }
    for attention in ("softmax", "oscillator"):
        on_m3, on_m0 = (small[attention, board] for board in SMALL)
        assert on_m0.instructions > on_m3.instructions
        for row in (on_m3, on_m0):
            assert all(layer.instructions > 0 for layer in row.layers)
            assert 0 < sum(layer.instructions for layer in row.layers) <= row.instructions
    assert {row["board"] for row in walked.compared.value}.isdisjoint(SMALL)


def test_a_cortex_m3_executes_nearly_what_the_schedule_expects(compared):
    _, folder = compared
    for row in read_results(folder / "results.json").results:
        run = Run(folder.parent / row.run)
        expected = expected_instructions(run.lowered, instruction_set(run.firmware(row.board)))
        counted = {layer.name: layer.instructions for layer in row.layers}
        assert bool(expected) == (row.board == "mps2-an385")
        for layer, instructions in expected.items():
            if instructions > 10_000:
                assert counted[layer] == pytest.approx(instructions, rel=ERROR)


def test_a_time_is_told_only_for_the_core_that_takes_it(compared):
    _, folder = compared
    for row in read_results(folder / "results.json").results:
        assert row.energy_uj is None
        if row.board == "mps2-an385":
            assert row.cycles.kind == row.latency_ms.kind == "modelled"
        else:
            assert (row.cycles, row.latency_ms) == (None, None)
    page = (folder / "report.html").read_text()
    assert "mps2-an385-m0" in page
    assert "Cortex-M0 (code)" in page
