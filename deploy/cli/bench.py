"""``entrain bench``: the kernels on fixed operators, beside what other compilers make of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from entrain.deploy.cli.options import AsJson, BoardNames, Quiet, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.sheet import Name, Number, Sheet
from entrain.deploy.cli.stages import boards_named, names
from entrain.deploy.errors import UsageError

if TYPE_CHECKING:
    from entrain.deploy.bench.runner import Measured
    from entrain.deploy.boards import Board
    from entrain.deploy.lowering.graph import LoweredGraph

# others' instructions, as multiples of ours
OTHERS = {"c_loop": "C loop", "tvm_unscheduled": "TVM", "tvm_llvm": "LLVM", "cmsis_nn": "CMSIS-NN"}
LONGEST = 1000  # tokens: what an emulated board holds

Only = Annotated[
    str | None,
    typer.Option("--only", help="Measure only the cases whose name holds this text."),
]


Lengths = Annotated[
    str | None,
    typer.Option(
        "--lengths",
        help="Instead: the attention cores on sequences of these lengths, such as 25,49,98,196.",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", help="Draw the cost over the length into this file (.svg or .png)."),
]


def bench(
    boards: BoardNames = None,
    only: Only = None,
    lengths: Lengths = None,
    plot: Plot = None,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Count the instructions of every kernel in the emulator, each result checked to the bit."""
    from entrain.deploy.bench.published import source

    out = Output(machine, quiet, verbose)
    if plot is not None and lengths is None:
        raise UsageError(
            "a plot is of several lengths", where="--plot", remedy="give --lengths 25,49,98,196 too"
        )
    rows = [
        _row(case, _measured(case, board, out))
        for board in boards_named(boards, "--boards")
        for case in _cases(only, lengths)
    ]
    out.result(rows, _tables(rows))
    out.remark(f"Instructions are counted by the emulator. CMSIS-NN: {source()}")
    if plot is not None:
        from entrain.deploy.bench.plot import draw_lengths

        draw_lengths(rows, plot)
        out.remark(f"{plot}")


@dataclass(frozen=True)
class _Case:
    """What is measured, and its length where that is what varies."""

    name: str
    network: Callable[[], LoweredGraph]
    tokens: int | None = None


def _cases(only: str | None, lengths: str | None) -> list[_Case]:
    from entrain.deploy.bench.cases import CASES, cores_of_length

    if lengths is None:
        found = [_Case(name, network) for name, network in CASES.items()]
    else:
        found = [
            _Case(f"attention core {name}", network, tokens)
            for tokens in _whole_numbers(lengths)
            for name, network in cores_of_length(tokens).items()
        ]
    chosen = [case for case in found if only is None or only in case.name]
    if not chosen:
        names = dict.fromkeys(case.name for case in found)
        raise UsageError(
            f"no case is called {only!r}", where="--only", remedy="one of: " + ", ".join(names)
        )
    return chosen


def _whole_numbers(text: str) -> list[int]:
    parts = names(text, "--lengths")
    if not all(part.isascii() and part.isdigit() and 1 < int(part) <= LONGEST for part in parts):
        raise UsageError(
            f"lengths are whole numbers from 2 to {LONGEST}, not {text!r}",
            where="--lengths",
            remedy="such as --lengths 25,49,98,196",
        )
    return [int(part) for part in parts]


def _measured(case: _Case, board: Board, out: Output) -> Measured:
    from entrain.deploy.bench.runner import measure_case

    of_length = "" if case.tokens is None else f", {case.tokens} tokens"
    out.remark(f"{board.name}: {case.name}{of_length}")
    with tempfile.TemporaryDirectory(prefix="entrain-bench-") as folder:
        return measure_case(case.name, case.network(), board, Path(folder))


def _row(case: _Case, measured: Measured) -> dict[str, Any]:
    from entrain.deploy.bench.published import cmsis_nn

    published = cmsis_nn(measured.board).get(measured.name) if case.tokens is None else None
    length = {} if case.tokens is None else {"tokens": case.tokens}
    return {
        "name": measured.name,
        "board": measured.board,
        **length,
        "macs": measured.macs,
        "instructions": measured.instructions,
        "instructions_per_mac": round(measured.instructions / measured.macs, 3)
        if measured.macs
        else None,
        **measured.others,
        "cmsis_nn": published,
        "flash_bytes": measured.flash_bytes,
        "ram_bytes": measured.ram_bytes,
    }


def _tables(rows: list[dict[str, Any]]) -> Group:
    """A table a board; what others need is told as a multiple of ours."""
    boards = dict.fromkeys(row["board"] for row in rows)
    return Group(*(_table(board, [r for r in rows if r["board"] == board]) for board in boards))


def _table(board: str, rows: list[dict[str, Any]]) -> Sheet:
    several = any("tokens" in row for row in rows)
    titles = (*(["tokens"] if several else []), "instructions", "a MAC", *OTHERS.values())
    shown = [
        (
            row["name"].replace("attention core", "core"),
            *([str(row["tokens"])] if several else []),
            f"{row['instructions']:,}",
            "" if row["instructions_per_mac"] is None else f"{row['instructions_per_mac']:.2f}",
            *(_multiple(row.get(key), row["instructions"]) for key in OTHERS),
        )
        for row in rows
    ]
    return Sheet((Name("case"), *map(Number, titles)), shown, title=board)


def _multiple(theirs: int | None, ours: int) -> str:
    return "" if theirs is None else f"x{theirs / ours:.1f}"
