"""The command line, one command a file.

A command is a function whose docstring is its help and whose annotated parameters are its options;
it is registered by one line in ``COMMANDS``. Its module imports torch, tvm and the like inside the
function, so that ``entrain --help`` answers at once.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, NoReturn

import typer
from typer.core import TyperGroup

from entrain.deploy.cli import (
    bench,
    boards,
    build,
    check,
    compare,
    experiment,
    export,
    flash,
    fpga,
    listen,
    lower,
    profile,
    quantize,
    report,
    stream_test,
    train,
    tune,
    validate,
)
from entrain.deploy.cli.output import error_console, print_error
from entrain.deploy.cli.settings import bind_environment, project_defaults
from entrain.deploy.errors import EntrainError, UsageError

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": compare.demo,
    "train": train.train,
    "quantize": quantize.quantize,
    "export": export.export,
    "lower": lower.lower,
    "check": check.check,
    "build": build.build,
    "flash": flash.flash,
    "validate": validate.validate,
    "profile": profile.profile,
    "compare": compare.compare,
    "tune": tune.tune,
    "listen": listen.listen,
    "stream-test": stream_test.stream_test,
    "bench": bench.bench,
    "report": report.report,
    "boards": boards.list_boards,
}

# Commands that have commands of their own, with what `--help` says of them.
GROUPS: dict[str, tuple[str, dict[str, Callable[..., None]]]] = {
    "experiment": (
        "The papers' tables and figures, run again.",
        {
            "list": experiment.list_experiments,
            "run": experiment.run,
            "show": experiment.show,
        },
    ),
    "fpga": ("The oscillators as a block of hardware.", fpga.COMMANDS),
}

INTERRUPTED = 130
# What the operating system refuses for reasons that lie outside of Entrain.
REFUSALS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit: 0 done, 1 a check failed, 2 wrong use, 3 device lost, 130 Ctrl-C."""
    try:
        group = command_group()
        group.main(args=arguments, prog_name="entrain", default_map=project_defaults(group))
    except EntrainError as error:
        _fail(error)
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        _fail(_refused(error))
    except SystemExit as ending:
        if ending.code == INTERRUPTED:
            error_console().print("interrupted", style="bold")
        raise
    sys.exit(0)


def _fail(error: EntrainError) -> NoReturn:
    """Print an error and exit with its code."""
    print_error(error)
    sys.exit(error.exit_code)


def _refused(error: OSError) -> EntrainError:
    reason = error.strerror or str(error)
    return UsageError(
        f"the operating system refuses: {reason[:1].lower()}{reason[1:]}",
        where=str(error.filename) if error.filename else None,
        remedy="check the permissions there, and the space left on the disks (/tmp among them)",
    )


def command_group() -> TyperGroup:
    """The whole command line, its options open to the environment."""
    application = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Any option can be set as ENTRAIN_<OPTION> and in entrain.toml.",
    )
    application.callback()(_entrain)
    for name, command in COMMANDS.items():
        application.command(name)(command)
    for name, (title, commands) in GROUPS.items():
        nested = typer.Typer(no_args_is_help=True, help=title)
        for own, command in commands.items():
            nested.command(own)(command)
        application.add_typer(nested, name=name)
    group = typer.main.get_command(application)
    assert isinstance(group, TyperGroup)  # typer makes a group of any application with a callback
    bind_environment(group)
    return group


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"entrain {version('entrain-edge')}")
        raise typer.Exit


def _entrain(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Attention by synchronization, from PyTorch to a microcontroller, measured on the device."""
