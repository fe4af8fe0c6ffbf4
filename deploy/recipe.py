"""What a run is asked to be: its config.toml, by the recipe of its task."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from entrain.deploy.errors import UsageError, concerning
from entrain.deploy.runs import Run, checked_name, create_run
from entrain.deploy.tasks import TASKS
from entrain.deploy.tasks.contract import Recipe, Task

_MEND = "mend the file, or choose another run with --run NAME"


def open_run(root: Path, recipe: Recipe, name: str | None = None) -> Run:
    """The run of a recipe: taken up again, or made.

    Raises:
        UsageError: a run of that name exists and was asked to be something else.
    """
    run = Run(root / checked_name(name or recipe.run_name))
    if run.config.is_file():
        found = read_recipe(run)
        if found != recipe:
            raise UsageError(
                f"the run {run.name} was made by another recipe: {_difference(found, recipe)}",
                where=str(run.config),
                remedy="choose another --name, or remove that run's folder",
            )
        return run
    return create_run(root, run.name, {"task": recipe.task, **asdict(recipe)})


def settings_of(run: Run) -> dict[str, Any]:
    """What stands in a run's config.toml.

    Raises:
        UsageError: the file is missing, or is not TOML.
    """
    with concerning(str(run.config), _MEND):
        return dict(run.settings())


def task_of(run: Run) -> Task[Any, Any, Any]:
    """The task of a run that is trained here.

    Raises:
        UsageError: config.toml is missing or damaged, or names no such task.
    """
    name = settings_of(run).get("task")
    if not isinstance(name, str) or name not in TASKS:
        raise UsageError(
            f"the run's task is {name!r}, and what is trained here is one of: {', '.join(TASKS)}",
            where=str(run.config),
            remedy="choose another run with --run NAME",
        )
    return TASKS[name]


def read_recipe(run: Run) -> Recipe:
    """The recipe in a run's config.toml.

    Raises:
        UsageError: it is missing, of a task that is not trained here, or damaged.
    """
    kind = task_of(run).recipe_type
    settings = settings_of(run)
    settings.pop("task")
    try:
        recipe = TypeAdapter(kind).validate_python(settings)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
            where=str(run.config),
            remedy=_MEND,
        ) from error
    return replace(recipe, data=kind.place(recipe.data))


def _difference(found: Recipe, asked: Recipe) -> str:
    if found.task != asked.task:
        return f"task {found.task}, not {asked.task}"
    before, now = asdict(found), asdict(asked)
    return ", ".join(
        f"{key} {before[key]}, not {now[key]}" for key in now if before[key] != now[key]
    )
