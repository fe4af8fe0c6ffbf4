"""What a command prints, and where.

The result goes to stdout: a table for a person, or with ``--json`` one JSON value and nothing else.
Everything beside the result (progress, remarks, errors) goes to stderr.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.text import Text

from entrain.deploy.errors import EntrainError
from entrain.deploy.report.words import printable


def error_console() -> Console:
    """The console of stderr, as it is now (a test may have replaced it)."""
    return Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Output:
    """The output of one command.

    Args:
        machine: ``--json``.
        quiet: ``--quiet``: no progress and no remarks; the result is still printed.
        verbose: ``--verbose``: details too.
    """

    machine: bool = False
    quiet: bool = False
    verbose: bool = False

    def result(self, value: object, shown: RenderableType) -> None:
        """Print the result: ``value`` as JSON with ``--json``, else ``shown`` for a person."""
        if self.machine:
            sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")
        elif isinstance(shown, str):
            Console(highlight=False).print(printable(shown), markup=False, soft_wrap=True)
        else:
            Console(highlight=False).print(shown, crop=False)

    def remark(self, text: str) -> None:
        """Say something beside the result, as plain text; nothing with ``--quiet``."""
        if not self.quiet:
            error_console().print(printable(text), markup=False, soft_wrap=True)

    def detail(self, text: str) -> None:
        """Say something that only ``--verbose`` asks for."""
        if self.verbose:
            error_console().print(printable(text), style="dim", markup=False, soft_wrap=True)


def print_error(error: EntrainError) -> None:
    """Print what is wrong, where, and what to do, on stderr."""
    console = error_console()
    parts = (
        ("error", "bold red", error.what),
        ("at", "bold", error.where),
        ("try", "bold", error.remedy),
    )
    for name, style, text in parts:
        if text:
            line = Text.assemble((f"{name:>5}: ", style), printable(text))
            console.print(line, soft_wrap=True)
