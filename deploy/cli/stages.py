"""What several commands do with runs, recipes and data."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import Stages
from entrain.deploy.errors import UsageError, concerning
from entrain.deploy.recipe import open_run, read_recipe
from entrain.deploy.runs import Run, find_run, newest_run
from entrain.deploy.tasks import TASKS, Choices, Recipe, Task, find_task

if TYPE_CHECKING:
    from entrain.deploy.boards import Board
    from entrain.deploy.pipeline import LoadData
    from entrain.deploy.tasks.contract import DataSet

DEFAULT_TASK = "keyword"


def task_named(name: str) -> Task[Any, Any, Any]:
    """The task, if there is such a one.

    Raises:
        UsageError: there is not.
    """
    with concerning("TASK"):
        return find_task(name)


def recipe_of(task: Task[Any, Any, Any], attention: str, seed: int, choices: Choices) -> Recipe:
    """A recipe with mechanism and data spelt as they are everywhere, and the usual length.

    Raises:
        UsageError: there is no such mechanism, or the task does not take an option.
    """
    from entrain.models.attention import AttentionConfig

    with concerning("--attention"):
        slug = AttentionConfig.parse(attention).slug
    return task.recipe(slug, seed, choices)


def small_default() -> Recipe:
    """What is trained when a command needs a model and there is none."""
    return recipe_of(TASKS[DEFAULT_TASK], "softmax", 0, Choices())


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


def boards_named(text: str | None, option: str) -> list[Board]:
    """The boards of a list with commas; without one, the default board.

    Raises:
        UsageError: the list is empty or names a board twice.
        BoardError: there is none of some name.
    """
    if text is None:
        return [board_named(None, option)]
    return [board_named(name, option) for name in names(text, option)]


def run_or_small_default(root: Path, name: str | None, out: Output) -> Run:
    """The run of that name, or the newest trained one; else the small default, and that is said.

    Raises:
        UsageError: there is no run of that name.
    """
    if name is not None:
        return find_run(root, name)
    run = newest_run(root, *TASKS)
    if run is not None:
        return run
    out.remark("There is no trained model yet: training the small default first.")
    return open_run(root, small_default())


def data_of(run: Run, stages: Stages) -> LoadData:
    """What reads a run's data, once, when a stage first needs it."""

    @cache
    def load() -> DataSet[Any]:
        return read_data(read_recipe(run), stages)

    return load


def read_data(recipe: Recipe, stages: Stages) -> DataSet[Any]:
    """The data of a recipe, with a line that says so: making or decoding it takes a while.

    Raises:
        DataError: the folder is missing, empty or damaged.
        ToolError: the speech synthesizer is not installed.
    """
    task = TASKS[recipe.task]
    if recipe.data == recipe.built_in:
        stages.say(task.built_in_note)
    with stages.work(f"read the {task.sample}s of {recipe.data_name}"):
        data: DataSet[Any] = task.load(recipe)
        return data


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
