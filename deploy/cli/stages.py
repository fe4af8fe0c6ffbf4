"""What several commands do with runs, recipes and data."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import Stages
from entrain.deploy.errors import UsageError, concerning
from entrain.deploy.recipe import (
    SYNTHETIC,
    TASK,
    KeywordRecipe,
    data_place,
    open_run,
    read_recipe,
    usual_epochs,
)
from entrain.deploy.runs import Run, find_run, newest_run

if TYPE_CHECKING:
    from entrain.deploy.boards import Board
    from entrain.deploy.pipeline import LoadData
    from entrain.models.data import KeywordData

SYNTHETIC_NOTE = (
    "No --data-dir: using synthetic speech. What is learned from it does not carry over to "
    "people's voices; accuracy on it says nothing about real speech."
)


def checked_task(task: str) -> str:
    """The task, if there is such a one.

    Raises:
        UsageError: there is not.
    """
    if task != TASK:
        raise UsageError(
            f"there is no task {task!r}", where="TASK", remedy=f"tasks there are: {TASK}"
        )
    return task


def keyword_recipe(
    attention: str, seed: int, data_dir: Path | None, standard_12: bool, epochs: int | None
) -> KeywordRecipe:
    """A recipe with mechanism and data spelt as they are everywhere, and the usual length.

    Raises:
        UsageError: there is no such mechanism.
    """
    from entrain.models.attention import AttentionConfig

    with concerning("--attention"):
        slug = AttentionConfig.parse(attention).slug
    data = SYNTHETIC if data_dir is None else data_place(data_dir)
    return KeywordRecipe(slug, seed, data, standard_12, epochs or usual_epochs(data))


def board_named(name: str | None, option: str) -> Board:
    """The board that an option names; without it, the default one.

    Raises:
        BoardError: there is none of that name.
    """
    from entrain.deploy.boards import find_board

    if name is None:
        from entrain.deploy.device.address import DEFAULT_BOARD

        return find_board(DEFAULT_BOARD)
    with concerning(option):
        return find_board(name)


def run_or_small_default(root: Path, name: str | None, out: Output) -> Run:
    """The run of that name, or the newest keyword run; else the small default, and that is said.

    Raises:
        UsageError: there is no run of that name.
    """
    if name is not None:
        return find_run(root, name)
    run = newest_run(root, TASK)
    if run is not None:
        return run
    out.remark("There is no trained model yet: training the small default first.")
    return open_run(root, keyword_recipe("softmax", 0, None, False, None))


def clips_of(run: Run, stages: Stages) -> LoadData:
    """What reads a keyword run's clips, once, when a stage first needs them."""

    @cache
    def load() -> KeywordData:
        return read_clips(read_recipe(run), stages)

    return load


def read_clips(recipe: KeywordRecipe, stages: Stages) -> KeywordData:
    """The clips of a recipe, with a line that says so: making or decoding them takes a while.

    Raises:
        DataError: the folder is missing, empty or damaged.
        ToolError: the speech synthesizer is not installed.
    """
    if recipe.data == SYNTHETIC:
        stages.say(SYNTHETIC_NOTE)
    with stages.work(f"read the clips of {recipe.data_name}"):
        return recipe.load_data()


def names(text: str, option: str) -> list[str]:
    """The names in an option's list separated by commas, each once.

    Raises:
        UsageError: the list is empty.
    """
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise UsageError(
            "nothing is named", where=option, remedy="name one or more, separated by commas"
        )
    return list(dict.fromkeys(found))
