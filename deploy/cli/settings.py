"""Where an option's value comes from: command line, then environment, then entrain.toml.

Every option of every command can be set as ``ENTRAIN_<OPTION>`` (``--runs-dir`` as
``ENTRAIN_RUNS_DIR``) and in the ``entrain.toml`` of the working directory: at its top for all
commands that have the option, or in a command's table for that command alone::

    runs-dir = "experiments"

    [compare]
    samples = 200
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from typer.core import TyperCommand, TyperGroup, TyperOption

from entrain.deploy.errors import UsageError, concerning
from entrain.deploy.toml import line_of, read_toml

PROJECT_FILE = Path("entrain.toml")

Defaults = dict[str, dict[str, object]]


def options_of(command: TyperCommand) -> dict[str, TyperOption]:
    """A command's options by their spelling without dashes in front: ``runs-dir``."""
    options = (param for param in command.params if isinstance(param, TyperOption))
    return {_spelling(option): option for option in options if option.name != "help"}


def commands_of(group: TyperGroup) -> dict[str, TyperCommand]:
    """The commands of the whole command line, by name."""
    return {
        name: command
        for name, command in group.commands.items()
        if isinstance(command, TyperCommand)
    }


def bind_environment(group: TyperGroup) -> None:
    """Let every option be set by ``ENTRAIN_<OPTION>``."""
    for command in commands_of(group).values():
        for spelling, option in options_of(command).items():
            option.envvar = f"ENTRAIN_{spelling.replace('-', '_').upper()}"
            option.show_envvar = False  # the rule is said once, at the foot of --help


def project_defaults(group: TyperGroup, path: Path = PROJECT_FILE) -> Defaults:
    """What entrain.toml sets, by command and parameter; empty where there is no such file.

    Raises:
        UsageError: a key names no option, or a table no command; with file and line.
    """
    if not path.is_file():
        return {}
    with concerning(str(path), "mend that line, or remove the file"):
        tables = read_toml(path)
    commands = {name: options_of(command) for name, command in commands_of(group).items()}
    common = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    everywhere = {key for options in commands.values() for key in options}
    _refuse_unknown(path, (), common, everywhere, "option")
    own = {key: value for key, value in tables.items() if isinstance(value, Mapping)}
    _refuse_unknown(path, (), own, set(commands), "command")
    defaults: Defaults = {}
    for name, options in commands.items():
        table = own.get(name, {})
        _refuse_unknown(path, (name,), table, set(options), f"option of `entrain {name}`")
        values = {**common, **table}
        defaults[name] = {
            option.name: values[key] for key, option in options.items() if key in values
        }
    return defaults


def _refuse_unknown(
    path: Path, table: tuple[str, ...], values: Mapping[str, object], known: set[str], sort: str
) -> None:
    for key in values:
        if key in known:
            continue
        line = line_of(path.read_text(encoding="utf-8"), (*table, key))
        near = difflib.get_close_matches(key, known, n=1)
        allowed = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
        raise UsageError(
            f"{key!r} is no {sort}",
            where=f"{path}:{line}" if line else str(path),
            remedy=allowed,
        )


def _spelling(option: TyperOption) -> str:
    return max(option.opts, key=len).lstrip("-")
