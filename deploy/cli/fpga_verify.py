"""``entrain fpga verify``: whether all implementations of the blocks answer the same."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from entrain.deploy.cli.fpga_options import blocks_of, kept_folder
from entrain.deploy.cli.options import AsJson, Quiet, Seed, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.sheet import Column, Name, Number, Sheet
from entrain.deploy.errors import CheckFailed, Mismatch, concerning

if TYPE_CHECKING:
    from entrain.fpga.verification.accuracy import StateError, WordLength
    from entrain.fpga.verification.outcomes import Verification

ACCURACY_QUERIES = 20_000

Vectors = Annotated[
    int, typer.Option("--vectors", min=100, help="Test vectors, of all blocks together.")
]
Blocks = Annotated[
    str | None,
    typer.Option("--block", help="Names of blocks, separated by commas; without it, all."),
]


def verify(
    vectors: Vectors = 10_000,
    block: Blocks = None,
    seed: Seed = 0,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compare every implementation of the FPGA blocks with the reference, to the bit."""
    from entrain.fpga.verification.accuracy import state_errors, word_lengths
    from entrain.fpga.verification.outcomes import SUBJECTS
    from entrain.fpga.verification.outcomes import verify as verified

    out = Output(machine, quiet, verbose)
    with shown_stages(out) as stages, stages.work("verify") as work, concerning("--block"):
        found = verified(
            kept_folder(),
            count=vectors,
            blocks=blocks_of(block, list(SUBJECTS), "--block"),
            seed=seed,
            told=work.reach,
        )
    errors = list(state_errors(ACCURACY_QUERIES, seed))
    lengths = list(word_lengths(seed=seed))
    out.result(_value(found, errors, lengths), _tables(found, errors, lengths))
    _judge(found, errors)


def _judge(found: Verification, errors: list[StateError]) -> None:
    first = next((o for o in found.outcomes if o.first is not None), None)
    if first is not None:
        raise Mismatch(
            f"{found.differences} answers differ from the reference; {first.first}",
            where=f"{first.block}, {first.implementation}",
        )
    wrong = next((error for error in errors if not error.holds), None)
    if wrong is not None:
        raise CheckFailed(
            f"a state is {wrong.largest:.3g} from where it should settle",
            where=f"{wrong.scheme}, d_osc = {wrong.d_osc}",
        )


def _value(
    found: Verification, errors: list[StateError], lengths: list[WordLength]
) -> dict[str, Any]:
    from entrain.fpga.verification.accuracy import STATE_BOUND

    outcomes = [asdict(outcome) for outcome in found.outcomes]
    for row, outcome in zip(outcomes, found.outcomes, strict=True):
        row["first"] = None if outcome.first is None else str(outcome.first)
    return {
        "vectors": found.vectors,
        "differences": found.differences,
        "implementations": outcomes,
        "state_bound": STATE_BOUND,
        "states": [asdict(error) for error in errors],
        "word_lengths": [asdict(length) for length in lengths],
    }


def _tables(found: Verification, errors: list[StateError], lengths: list[WordLength]) -> Group:
    outcomes = [
        (o.block, o.implementation, f"{o.vectors:,}", f"{o.differences:,}") for o in found.outcomes
    ]
    states = [
        (
            error.scheme,
            str(error.d_osc),
            f"{error.vectors:,}",
            f"{error.weak:,}",
            f"{error.largest * 2**10:.2f}",
            f"{error.steps_mean:.1f}",
            f"{error.steps_p99:.0f}",
            str(error.steps_most),
        )
        for error in errors
    ]
    formats = [
        (
            str(length.d_osc),
            str(length.anchor_bits),
            str(length.state_bits),
            f"{length.settled_largest * 2**10:.2f}",
            f"{length.state_rms * 2**10:.1f}",
            f"{length.context_rms:.3f}",
            f"{length.context_p99:.2f}",
        )
        for length in lengths
        if length.state_bits % 2 == 0
    ]
    counted, sizes = ("vectors", "differences"), ("d_osc", "anchor bits", "state bits")
    return Group(
        Sheet((Name("block"), Column("implementation"), *map(Number, counted)), outcomes),
        Sheet(
            (
                Column("scheme"),
                *map(Number, ("d_osc", "vectors", "weak", "largest", "steps", "99 %", "most")),
            ),
            states,
            title="distance from the settled state in 2^-10, fields that are not weak",
        ),
        Sheet(
            tuple(map(Number, (*sizes, "z alone", "z", "context", "99 %"))),
            formats,
            title="word lengths: largest and rms distance of z in 2^-10, contexts in int8 steps",
        ),
    )
