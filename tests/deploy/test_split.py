"""A trained keyword network with its attention in the netlist of a block, on the small road."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.errors import UsageError
from entrain.deploy.recipe import read_recipe
from entrain.deploy.split import split_run
from entrain.deploy.tasks import TASKS

CLIPS = 6


def loaded(run):
    @cache
    def load():
        recipe = read_recipe(run)
        return TASKS[recipe.task].load(recipe)

    return load


@pytest.mark.parametrize("mechanism", ["oscillator-separable", "softmax"])
def test_it_answers_as_the_whole_network_does(road, mechanism):
    run = road.run(mechanism)
    with shown_stages(Output(machine=True, quiet=True, verbose=False)) as stages:
        split = split_run(run, loaded(run), CLIPS, stages)
        with pytest.raises(UsageError, match="0 clips"):
            split_run(run, loaded(run), 0, stages)
    assert (split.run, split.clips) == (run.name, CLIPS)
    assert split.agreeing == split.identical == CLIPS
    assert split.correct_split == split.correct_whole
    assert split.cycles_per_query > 10


@pytest.mark.parametrize("mechanism", ["oscillator-separable", "softmax"])
def test_the_block_is_validated_like_a_board(road, run_entrain, mechanism):
    run = road.run(mechanism)
    options = ("--device", "fpga-sim", "--run", run.name, "--runs-dir", road.runs_dir)
    ended = run_entrain("validate", *options, "--json")
    assert ended.code == 0, ended.err
    assert ended.value["first_divergence"] is None
    assert [layer["differing"] for layer in ended.value["layers"]] == [0]
    assert ended.value["block"]["queries"] >= 200
    every = run_entrain("validate", *options, "--layers")
    assert every.code == 2
    assert "--layers" in every.err
    (board,) = (run.folder / "fpga").glob("board-*/entrain_board")
    assert Path(board).stat().st_size > 0
