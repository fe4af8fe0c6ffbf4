"""Command lines run in this process: how they ended and what they said."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        return json.loads(self.out)

    @property
    def stages(self) -> list[str]:
        """The stages that ran, in order: ``train``, ``build for mps2-an386``, ..."""
        lines = [line for line in self.err.splitlines() if line.startswith("keyword-")]
        return [line.split(": ")[1].split(",")[0] for line in lines if ": " in line]


def entrain(*arguments: object) -> Ended:
    """Run a command line in this process."""
    from entrain.deploy.cli import main

    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ending,
    ):
        main([str(argument) for argument in arguments])
    assert isinstance(ending.value.code, int)
    return Ended(ending.value.code, out.getvalue(), err.getvalue())
