"""The stage ``check``: what a lowered model needs of a board, known before anything is flashed.

Memory is exact: the firmware is compiled and linked. Instructions are what the schedule expects of
the layers for which it chose among register blocks, an estimate: nothing is run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from entrain.deploy.boards import Board
from entrain.deploy.elf import instruction_set
from entrain.deploy.errors import ModelError
from entrain.deploy.lowering.artifact import LoweredModel, read_lowered
from entrain.deploy.lowering.schedule_files import SCHEDULE
from entrain.deploy.meters.modelled import CostModel
from entrain.deploy.pipeline import Progress, build
from entrain.deploy.results import Figure
from entrain.deploy.runs import Run

# How far the count of a layer may be from what the schedule expects: of matrix products 11 per cent
# (lowering/schedules/blocks.py), of convolutions, whose patches it leaves out, this much.
ERROR = 0.35
SOURCE = (
    f"{SCHEDULE}, what the chosen register blocks should cost; those layers of the keyword models"
    " that take more than 10,000 instructions are counted within 35 per cent of it on a Cortex-M4F"
    " and a Cortex-M55"
)


@dataclass(frozen=True)
class Prediction:
    """What the schedule expects of some layers, on one board.

    Attributes:
        layers: their names.
        macs: their multiply-adds.
        instructions: they execute so many; modelled.
        latency_ms: they take so long; modelled, None for a board without costs.
    """

    layers: tuple[str, ...]
    macs: int
    instructions: Figure
    latency_ms: Figure | None


@dataclass(frozen=True)
class Needs:
    """What a lowered model needs of a board.

    Attributes:
        model: the lowered model, with its multiply-adds and its arena.
        board: the board, with the memory it has.
        flash_bytes: code, constants and initial values.
        ram_bytes: variables, the arena among them; without the stack.
        stack_bytes: the most stack it can use; None where that cannot be bounded.
        stack_reserved_bytes: the stack there is.
        prediction: None where the schedule expects nothing.
    """

    model: LoweredModel
    board: Board
    flash_bytes: int
    ram_bytes: int
    stack_bytes: int | None
    stack_reserved_bytes: int
    prediction: Prediction | None


def needs(run: Run, board: Board, progress: Progress) -> Needs:
    """What the lowered model of ``run`` needs of ``board``.

    Raises:
        ToolError: the compiler is not installed.
        ModelError: the run holds no whole lowered model.
        DoesNotFit: the board is too small, by how many bytes.
    """
    model = read_lowered(run.lowered)
    firmware = build(run, board, progress)
    expected = expected_instructions(run.lowered, instruction_set(firmware.image))
    return Needs(
        model=model,
        board=board,
        flash_bytes=firmware.flash_bytes,
        ram_bytes=firmware.ram_bytes,
        stack_bytes=firmware.stack_bytes,
        stack_reserved_bytes=firmware.symbols.address("stack_bytes", firmware.image),
        prediction=_prediction(model, board, expected) if expected else None,
    )


def expected_instructions(lowered: Path, instructions: str) -> dict[str, int]:
    """What the schedule expects of each layer; one of which it expects nothing, or 0, is left out.

    Args:
        lowered: the folder of the lowered model.
        instructions: an instruction set, as ``elf.instruction_set`` names it.

    Raises:
        ModelError: the schedule's file is missing or damaged.
    """
    path = lowered / SCHEDULE
    try:
        layers = json.loads(path.read_text(encoding="utf-8"))
        candidates = {name: layer["blocks"].get(instructions) for name, layer in layers.items()}
        found = {name: int(best[0]["instructions"]) for name, best in candidates.items() if best}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            "damaged, or written by another version",
            where=str(path),
            remedy="lower the model again with 'entrain lower'",
        ) from error
    return {name: count for name, count in found.items() if count > 0}


def _prediction(model: LoweredModel, board: Board, expected: dict[str, int]) -> Prediction:
    total = sum(expected.values())
    instructions = Figure(
        value=total,
        kind="modelled",
        low=total * (1 - ERROR),
        high=total * (1 + ERROR),
        source=SOURCE,
    )
    return Prediction(
        layers=tuple(expected),
        macs=sum(layer.macs for layer in model.layers if layer.name in expected),
        instructions=instructions,
        latency_ms=_latency(instructions, board),
    )


def _latency(instructions: Figure, board: Board) -> Figure | None:
    """Milliseconds of modelled instructions, the bounds of both models together."""
    if board.cost is None or instructions.low is None or instructions.high is None:
        return None
    cost = CostModel(board.cost, board.mhz)
    whole = cost.latency_ms(round(instructions.value))
    ends = [cost.latency_ms(round(end)) for end in (instructions.low, instructions.high)]
    return whole.model_copy(
        update={
            "low": ends[0].low,
            "high": ends[1].high,
            "source": f"{instructions.source}; {whole.source}",
        }
    )
