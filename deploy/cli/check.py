"""``entrain check``: what a run's model needs of a board, and whether it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrain.deploy.cli.options import AsJson, BoardName, Quiet, RunName, RunsDir, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.sheet import Column, Number, Sheet, Words
from entrain.deploy.cli.stages import board_named, data_of, run_or_small_default
from entrain.deploy.errors import DoesNotFit
from entrain.deploy.report.words import bounds, count, percent, significant
from entrain.deploy.runs import DEFAULT_ROOT

if TYPE_CHECKING:
    from entrain.deploy.check import Needs, Prediction


def check(
    run: RunName = None,
    board: BoardName = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Say what a run's model needs of a board, before flashing; exit 1 if it does not fit."""
    from entrain.deploy import check as stage
    from entrain.deploy import pipeline

    out = Output(machine, quiet, verbose)
    target = board_named(board, "--board")
    chosen = run_or_small_default(runs_dir, run, out)
    asked = {"run": chosen.name, "board": target.name}
    try:
        with shown_stages(out) as stages:
            pipeline.complete(chosen, data_of(chosen, stages), stages)
            found = stage.needs(chosen, target, stages)
    except DoesNotFit as error:
        if machine:
            short = {f"{memory}_bytes": count for memory, count in error.short.items()}
            out.result({**asked, "fits": False, "short": short}, "")
        raise
    out.result({**asked, "fits": True, **_value(found)}, _table(found))
    out.remark(f"{chosen.name} fits on {target.name}; nothing was flashed.")


def _value(found: Needs) -> dict[str, object]:
    model, board = found.model, found.board
    return {
        "flash_bytes": found.flash_bytes,
        "board_flash_bytes": board.flash_bytes,
        "ram_bytes": found.ram_bytes,
        "board_ram_bytes": board.ram_bytes,
        "arena_bytes": model.arena_bytes,
        "arena_bound": model.arena_bound,
        "stack_bytes": found.stack_bytes,
        "stack_reserved_bytes": found.stack_reserved_bytes,
        "macs": model.macs,
        "predicted": _predicted_value(found.prediction),
    }


def _predicted_value(prediction: Prediction | None) -> dict[str, object] | None:
    if prediction is None:
        return None
    latency = prediction.latency_ms
    return {
        "kind": "modelled",
        "layers": list(prediction.layers),
        "macs": prediction.macs,
        "instructions": prediction.instructions.model_dump(mode="json"),
        "latency_ms": None if latency is None else latency.model_dump(mode="json"),
    }


def _table(found: Needs) -> Sheet:
    model, board = found.model, found.board
    stack = "unknown" if found.stack_bytes is None else f"{found.stack_bytes:,}"
    rows = [
        ("flash, bytes", f"{found.flash_bytes:,}", f"{board.flash_bytes:,}", ""),
        (
            "variables, bytes",
            f"{found.ram_bytes:,}",
            f"{_ram_left(found):,}",
            "the RAM less the stack",
        ),
        ("  the arena", f"{model.arena_bytes:,}", "", f"{model.arena_bound:,} at the very least"),
        ("worst stack, bytes", stack, f"{found.stack_reserved_bytes:,}", ""),
        ("multiply-adds", f"{model.macs:,}", "", ""),
        *_predicted_rows(found),
    ]
    return Sheet((Column(""), Number("needs"), Number("of"), Words("")), rows)


def _ram_left(found: Needs) -> int:
    """What the variables can have."""
    return found.board.ram_bytes - found.stack_reserved_bytes


def _predicted_rows(found: Needs) -> list[tuple[str, str, str, str]]:
    prediction = found.prediction
    if prediction is None:
        return [("instructions", "", "", "not modelled for this core; 'entrain profile' counts")]
    share = percent(prediction.macs / found.model.macs) if found.model.macs else "none"
    some, all_layers = len(prediction.layers), len(found.model.layers)
    of_these = (
        f"modelled, of {some} of {all_layers} layers with {share} of the multiply-adds; "
        "'entrain profile' counts all"
    )
    instructions = prediction.instructions
    rows = [("instructions", count(instructions.value), bounds(instructions, count), of_these)]
    latency = prediction.latency_ms
    if latency is not None:
        shown = f"modelled at {found.board.mhz:g} MHz, of the same layers"
        rows.append(("milliseconds", significant(latency.value), bounds(latency), shown))
    return rows
