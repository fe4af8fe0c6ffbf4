"""Where an option's value comes from: command line, then environment, then entrain.toml.

Every option of every command can be set as ``ENTRAIN_<OPTION>`` (``--runs-dir`` as
``ENTRAIN_RUNS_DIR``) and in the ``entrain.toml`` of the working directory: at its top for all
commands that have the option, or in a command's table for that command alone::

    runs-dir = "experiments"

    [compare]
    samples = 200

    [experiment.run]
    jobs = 4
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path

from typer.core import TyperCommand, TyperGroup, TyperOption

from entrain.deploy.errors import UsageError, concerning
from entrain.deploy.toml import line_of, read_toml

PROJECT_FILE = Path("entrain.toml")

# By command and parameter; a command that has commands holds theirs.
Defaults = dict[str, object]


def options_of(command: TyperCommand) -> dict[str, TyperOption]:
    """A command's options by their spelling without dashes in front: ``runs-dir``."""
    options = (param for param in command.params if isinstance(param, TyperOption))
    return {_spelling(option): option for option in options if option.name != "help"}


def commands_of(group: TyperGroup) -> Iterator[TyperCommand]:
    """The commands of the whole command line, those within commands too."""
    for command in group.commands.values():
        if isinstance(command, TyperGroup):
            yield from commands_of(command)
        elif isinstance(command, TyperCommand):
            yield command


def bind_environment(group: TyperGroup) -> None:
    """Let every option be set by ``ENTRAIN_<OPTION>``."""
    for command in commands_of(group):
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
    return _group_defaults(group, path, (), tables, {})


def _group_defaults(
    group: TyperGroup,
    path: Path,
    table: tuple[str, ...],
    values: Mapping[str, object],
    above: Mapping[str, object],
) -> Defaults:
    """The defaults of a group's commands, from its table and from what stands above it."""
    sort = f"option of a command of `entrain {' '.join(table)}`" if table else "option"
    common = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    everywhere = {key for command in commands_of(group) for key in options_of(command)}
    _refuse_unknown(path, table, common, everywhere, sort)
    own = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    _refuse_unknown(path, table, own, set(group.commands), "command")
    defaults: Defaults = {}
    for name, command in group.commands.items():
        below, inherited = own.get(name, {}), {**above, **common}
        if isinstance(command, TyperGroup):
            defaults[name] = _group_defaults(command, path, (*table, name), below, inherited)
        elif isinstance(command, TyperCommand):
            defaults[name] = _command_defaults(command, path, (*table, name), below, inherited)
    return defaults


def _command_defaults(
    command: TyperCommand,
    path: Path,
    table: tuple[str, ...],
    values: Mapping[str, object],
    above: Mapping[str, object],
) -> Defaults:
    options = options_of(command)
    _refuse_unknown(path, table, values, set(options), f"option of `entrain {' '.join(table)}`")
    given = {**above, **values}
    return {option.name or key: given[key] for key, option in options.items() if key in given}


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
