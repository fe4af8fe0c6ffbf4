"""Schedules, one kind of core a file: how a layer's loops are arranged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from entrain.deploy.errors import UsageError
from entrain.deploy.lowering.schedules.scalar import schedule_scalar

Schedule = Callable[[Any], Any]

SCHEDULES: dict[str, Schedule] = {"scalar": schedule_scalar}


def find_schedule(name: str) -> Schedule:
    """A schedule by name.

    Raises:
        UsageError: there is no such schedule; the message lists those there are.
    """
    if name not in SCHEDULES:
        raise UsageError(f"there is no schedule {name}", remedy="one of " + ", ".join(SCHEDULES))
    return SCHEDULES[name]
