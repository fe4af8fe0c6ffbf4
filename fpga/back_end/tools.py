"""The programs of the FPGA flow: installed with the extra ``fpga``, run in a folder, with a log."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

from entrain.deploy.errors import FpgaToolFailed, ToolError

_ERROR = re.compile(r"^.*\bERROR: .+$", re.MULTILINE)

# What the programs complain of, and what to do about it.
_REMEDIES = {
    "is unconstrained in": "give the port a pin in the board's file of constraints",
    "unconstrained IO": "give the port a pin in the board's file of constraints",
    "syntax error": "correct the source at the line that is named",
    "is not part of the design": "add the module's source, or correct its name",
    "not found": "correct the name, or add the source or file",
}


def tool_failed(tool: str, said: str, log: Path, remedy: str | None = None) -> FpgaToolFailed:
    """The error of a program that failed.

    Args:
        tool: its name.
        said: its first line of error.
        log: the file that holds everything it printed.
        remedy: what the reader can do about it.
    """
    return FpgaToolFailed(
        f"{tool} failed: {said}",
        where=str(log),
        remedy=remedy or "the file named above holds everything that it printed",
    )


def tool_version(tool: str) -> str:
    """Name and version of the package that ``tool`` was installed with.

    Raises:
        ToolError: it is not installed.
    """
    for script in entry_points(group="console_scripts", name=tool):
        if script.dist is not None and tool_path(tool).is_file():
            return f"{script.dist.name} {script.dist.version}"
    raise ToolError(f"{tool} is not installed", remedy="pip install 'entrain-edge[fpga]'")


def tool_path(tool: str) -> Path:
    """Where ``tool`` lies: beside the Python that runs this."""
    return Path(sys.executable).parent / tool


def run_tool(
    tool: str, arguments: Sequence[str], folder: Path, log: Path, *, own_log: str | None = None
) -> None:
    """Run ``tool`` in ``folder``; everything that it prints is added to ``log``.

    The programs that are WebAssembly see no file by a path under /tmp: name files from ``folder``.

    Args:
        tool: the program.
        arguments: its arguments.
        folder: where it runs.
        log: the file to add to.
        own_log: a file in ``folder`` into which the program prints by itself; its content is moved
            to ``log``.

    Raises:
        ToolError: it is not installed.
        FpgaToolFailed: it failed.
    """
    tool_version(tool)
    with log.open("ab") as printed:
        before = printed.tell()
        printed.write(f"$ {' '.join([tool, *arguments])}\n".encode())
        printed.flush()
        command = [str(tool_path(tool)), *arguments]
        ended = subprocess.run(
            command, cwd=folder, stdout=printed, stderr=subprocess.STDOUT, check=False
        )
        if own_log is not None and (folder / own_log).is_file():
            printed.write((folder / own_log).read_bytes())
            (folder / own_log).unlink()
    if ended.returncode != 0:
        with log.open("rb") as printed:
            printed.seek(before)
            said = _first_error(printed.read().decode(errors="replace"))
        advice = (remedy for words, remedy in _REMEDIES.items() if words in said)
        raise tool_failed(tool, said, log, remedy=next(advice, None))


def _first_error(printed: str) -> str:
    """The first line with ERROR; a Python program's last line, where its exception stands."""
    error = _ERROR.search(printed)
    if error:
        return error[0].strip()
    lines = [line.strip() for line in printed.splitlines()[1:] if line.strip()]
    return lines[-1] if lines else "it printed nothing"
