"""``entrain profile``: where a model's instructions go."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from entrain.deploy.cli.options import AsJson, BoardName, Quiet, RunName, RunsDir, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.sheet import Name, Number, Sheet, Words
from entrain.deploy.cli.stages import board_named, data_of, run_or_small_default
from entrain.deploy.report.words import bounds, count, percent, times
from entrain.deploy.runs import DEFAULT_ROOT

if TYPE_CHECKING:
    from entrain.deploy.profiling import Profile
    from entrain.deploy.results import Figure


def profile(
    run: RunName = None,
    board: BoardName = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Count the instructions of every layer in the emulator, beside the bound of the core."""
    from entrain.deploy import pipeline
    from entrain.deploy.lowering.artifact import read_lowered
    from entrain.deploy.profiling import profile_model

    out = Output(machine, quiet, verbose)
    target = board_named(board, "--board")
    chosen = run_or_small_default(runs_dir, run, out)
    with shown_stages(out) as stages:
        pipeline.complete(chosen, data_of(chosen, stages), stages)
        firmware = pipeline.build(chosen, target, stages)
        found = profile_model(read_lowered(chosen.lowered), firmware)
    out.result({"run": chosen.name, "board": target.name, **_value(found)}, _table(found))
    out.remark(
        f"{chosen.name} on {target.name}, counted by the emulator. Bound: how many times more than "
        "the multiply-adds alone would take, as many at once as the core can."
    )
    if found.cycles is not None:
        between = bounds(found.cycles, count)
        out.remark(f"Cycles, modelled: {count(found.cycles.value)} ({between}); by layer in --json")
    if found.amdahl_bound is not None:
        core = found.core_instructions
        out.remark(
            f"Attention core: {count(core)}, {percent(core / found.total)}. If it cost nothing: "
            f"{times(found.amdahl_bound)} fewer instructions (Amdahl's bound)"
        )


def _value(found: Profile) -> dict[str, Any]:
    return {
        "instructions": found.total,
        "cycles": _figure(found.cycles),
        "core_instructions": found.core_instructions,
        "amdahl_bound": found.amdahl_bound,
        "layers": [
            {
                **asdict(layer),
                "instructions_per_mac": layer.instructions_per_mac,
                "cycles": _figure(layer.cycles),
            }
            for layer in found.layers
        ],
        "overhead": found.overhead,
        "library": found.library,
    }


def _figure(figure: Figure | None) -> dict[str, Any] | None:
    return None if figure is None else figure.model_dump(mode="json", exclude_none=True)


def _table(found: Profile) -> Sheet:
    rows = [
        (
            layer.name,
            layer.op,
            f"{layer.macs:,}" if layer.macs else "",
            f"{layer.instructions:,}",
            _share(layer.instructions, found.total),
            "" if layer.instructions_per_mac is None else f"{layer.instructions_per_mac:.2f}",
            "" if layer.bound is None else f"x{layer.instructions / layer.bound:.1f}",
        )
        for layer in found.layers
    ]
    outside = (("model_run", found.overhead), ("library functions", found.library))
    for name, instructions in outside:
        if instructions:
            share = _share(instructions, found.total)
            rows.append((name, "", "", f"{instructions:,}", share, "", ""))
    macs = sum(layer.macs for layer in found.layers)
    whole = f"{found.total / macs:.2f}" if macs else ""
    rows.append(("whole model", "", f"{macs:,}", f"{found.total:,}", "100 %", whole, ""))
    numbers = map(Number, ("MACs", "instructions", "share", "a MAC", "bound"))
    return Sheet((Name("layer"), Words("does"), *numbers), rows)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %"
