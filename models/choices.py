"""Names that settings choose by."""

from __future__ import annotations

from collections.abc import Collection

from entrain.deploy.errors import UsageError


def check_choice(kind: str, name: str, known: Collection[str]) -> None:
    """Tell at once of a name that does not exist.

    Args:
        kind: what the name is of, for people: ``there is no <kind> <name>``.
        name: as it was given.
        known: all names there are, in the order in which they are shown.

    Raises:
        UsageError: if `name` is not among them.
    """
    if name not in known:
        raise UsageError(
            f"there is no {kind} {name!r}", remedy=f"Choose one of: {', '.join(known)}."
        )
