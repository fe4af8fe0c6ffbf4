"""Bars while stages run, a line when they are over."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from entrain.deploy.cli import progress
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.runs import Run


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal of 80 columns gets to see."""
    monkeypatch.setenv("TERM", "xterm")  # whatever runs the tests may itself be a dumb one
    screen = io.StringIO()
    console = Console(
        file=screen, force_terminal=True, width=80, highlight=False, color_system=None
    )
    monkeypatch.setattr(progress, "error_console", lambda: console)
    return screen


def walk(stages, run, steps=3):
    with stages.stage(run, "train", steps) as step:
        for number in range(steps):
            step(f"loss {number}")


def test_in_a_pipe_each_stage_leaves_one_whole_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    with shown_stages(Output()) as stages:
        walk(stages, Run(tmp_path / f"keyword-{'x' * 60}"))
        with stages.stage(Run(tmp_path / "run"), "build", 1) as step:
            step("12 bytes")
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) == 2
    assert lines[0].startswith(f"keyword-{'x' * 60}: train, 3/3 in 0.0 s, loss 2")
    assert lines[1].startswith("run: build, 0.0 s, 12 bytes")


def test_quiet_says_nothing_and_logs(tmp_path, capsys):
    with shown_stages(Output(quiet=True)) as stages:
        walk(stages, Run(tmp_path))
    assert capsys.readouterr() == ("", "")
    assert ": train, 3/3 in " in (tmp_path / "log.txt").read_text()


def test_a_stage_that_fails_says_how_far_it_got(tmp_path, capsys):
    def walk_and_stop():
        with shown_stages(Output()) as stages, stages.stage(Run(tmp_path), "train", 5) as step:
            step("loss 1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        walk_and_stop()
    assert f"{tmp_path.name}: train stopped, 1/5 in 0.0 s, loss 1\n" in capsys.readouterr().err


def test_a_terminal_shows_a_bar_for_each_stage_under_way_and_none_afterwards(tmp_path, terminal):
    run = Run(tmp_path / "a-run")
    with shown_stages(Output()) as stages:
        with stages.stage(run, "train", 2) as step:
            step("loss [red]1")
            stages.bars.refresh()
            assert [task.description for task in stages.bars.tasks] == ["train"]
            with stages.stage(run, "measure", 9):
                assert len(stages.bars.tasks) == 2
            step("loss 0")
        assert not stages.bars.tasks
    shown = terminal.getvalue()
    assert "1/2" in shown
    assert "train  loss [red]1  a-run" in shown
    assert shown.count("a-run: train, 2/2 in 0.0 s, loss 0\n") == 1


def test_a_bar_fits_the_terminal(tmp_path, terminal):
    with shown_stages(Output()) as stages, stages.stage(Run(tmp_path / ("x" * 90)), "train", 2):
        stages.bars.refresh()
    bars = [
        line
        for line in terminal.getvalue().splitlines()
        if "\N{BOX DRAWINGS HEAVY HORIZONTAL}" in line
    ]
    assert bars
    for bar in bars:
        assert "\N{HORIZONTAL ELLIPSIS}" in bar
        assert len(bar.rpartition("\x1b[2K")[2]) <= 80


def test_what_a_stage_says_cannot_move_the_cursor(tmp_path, capsys):
    with shown_stages(Output()) as stages, stages.stage(Run(tmp_path), "train", 1) as step:
        step("loss \x1b[2J")
    assert "\x1b" not in capsys.readouterr().err


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path, capsys):
    with shown_stages(Output()) as stages:
        walk(stages, Run(tmp_path / "not" / "there"))
    assert "train, 3/3" in capsys.readouterr().err
