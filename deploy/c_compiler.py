"""This machine's C compiler, called; what it refuses is an error with its first complaint."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from entrain.deploy.errors import ToolError


def call_c_compiler(
    arguments: Sequence[str], *, what: str, where: str, remedy: str | None = None
) -> str:
    """What ``cc`` prints on its standard output.

    Args:
        arguments: of ``cc``.
        what: is compiled, for the error.
        where: it lies, likewise.
        remedy: what to do if the compiler refuses it.

    Raises:
        ToolError: there is no C compiler, or it refuses the sources.
    """
    try:
        found = subprocess.run(["cc", *arguments], check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise ToolError(
            "no C compiler on this machine", where="cc", remedy="apt-get install build-essential"
        ) from error
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if "error" in line]
        raise ToolError(
            f"the compiler refuses {what}: {lines[0] if lines else error}",
            where=where,
            remedy=remedy,
        ) from error
    return found.stdout
