"""Tasks, one a file; `TASKS` has one line each."""

from __future__ import annotations

from typing import Any

from entrain.deploy.errors import UsageError
from entrain.deploy.tasks.agreement import AgreementTask
from entrain.deploy.tasks.contract import Choices, Recipe, Task
from entrain.deploy.tasks.keyword import KeywordTask
from entrain.deploy.tasks.keyword_linear import KeywordLinearTask
from entrain.deploy.tasks.keyword_stream import KeywordStreamTask

TASKS: dict[str, Task[Any, Any, Any]] = {
    "keyword": KeywordTask(),
    "keyword-stream": KeywordStreamTask(),
    "keyword-linear": KeywordLinearTask(),
    "agreement": AgreementTask(),
}

__all__ = ["TASKS", "Choices", "Recipe", "Task", "find_task"]


def find_task(name: str) -> Task[Any, Any, Any]:
    """The task of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in TASKS:
        raise UsageError(
            f"there is no task {name!r}", remedy=f"tasks there are: {', '.join(TASKS)}"
        )
    return TASKS[name]
