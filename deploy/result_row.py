"""The row of results.json for what a device answered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.boards import Board
from entrain.deploy.build import Firmware
from entrain.deploy.device.counting import InstructionCounts
from entrain.deploy.lowering.artifact import LayerRecord, LoweredModel
from entrain.deploy.measure import Answers, Classes, Reference, Samples, classes_of
from entrain.deploy.meters.modelled import CostModel
from entrain.deploy.results import Accuracy, Layer, Result, Subset
from entrain.deploy.statistics import accuracy_interval, balanced_accuracy, confusion_matrix


def result_row(
    identity: Result,
    model: LoweredModel,
    firmware: Firmware,
    samples: Samples,
    truth: Reference,
    answers: Answers,
) -> Result:
    """The row of results.json for what a device answered.

    Args:
        identity: a row that says which run, mechanism, data and board; the rest is filled in.
        model: the lowered model.
        firmware: its image for the board.
        samples: what was asked.
        truth: this machine's answers.
        answers: the device's.
    """
    board, counts = firmware.board, answers.counts
    cost = CostModel(board.cost, board.mhz) if board.cost and counts else None
    total = counts.total if counts else 0
    return identity.model_copy(
        update={
            "board": board.name,
            "cpu": board.cpu,
            "macs": model.macs,
            "labels": samples.labels,
            **_correctness(samples, truth, answers),
            "instructions": counts.total if counts else None,
            "cycles": cost.cycles(total) if cost else None,
            "latency_ms": cost.latency_ms(total) if cost else None,
            "energy_uj": cost.energy_uj(total) if cost else None,
            "meter": "modelled" if cost else None,
            "flash_bytes": firmware.flash_bytes,
            "ram_bytes": firmware.ram_bytes,
            "arena_bytes": model.arena_bytes,
            "stack_bytes": firmware.stack_bytes,
            "board_flash_bytes": board.flash_bytes,
            "board_ram_bytes": board.ram_bytes,
            "layers": _layers(model, board, counts),
            "complete": len(answers.outputs) == len(samples),
        }
    )


def _correctness(samples: Samples, truth: Reference, answers: Answers) -> dict[str, object]:
    n = len(answers.outputs)
    if n == 0:
        return {"accuracy": Accuracy(n=0)}
    wanted, groups = samples.truth[:n], samples.groups and samples.groups[:n]
    device, host = classes_of(answers.outputs), classes_of(truth.outputs[:n])
    confusion = confusion_matrix(wanted, device, len(samples.labels))
    floats = truth.float_classes
    return {
        "accuracy": Accuracy(
            float=None if floats is None else _share(floats[:n] == wanted),
            int8_host=_share(host == wanted),
            device=_share(device == wanted),
            balanced=balanced_accuracy(confusion),
            n=n,
            ci95=accuracy_interval(device == wanted, groups),
        ),
        "subsets": _subsets(samples, device == wanted, None if floats is None else floats[:n]),
        "confusion": tuple(tuple(int(count) for count in row) for row in confusion),
        "mismatches": int((answers.outputs != truth.outputs[:n]).any(axis=1).sum()),
        "onnxruntime_agreement": _share(host == truth.onnx_classes[:n]),
    }


def _subsets(
    samples: Samples, right: NDArray[np.bool_], floats: Classes | None
) -> dict[str, Subset] | None:
    """Accuracy on each subset, as far as the device answered; None where the task has none."""
    n = len(right)
    found = {}
    for name, whole in samples.subsets.items():
        chosen = whole[:n]
        count = int(chosen.sum())
        found[name] = Subset(n=count)
        if count:
            groups = samples.groups and tuple(np.asarray(samples.groups[:n])[chosen].tolist())
            found[name] = Subset(
                n=count,
                device=_share(right[chosen]),
                float=None if floats is None else _share((floats == samples.truth[:n])[chosen]),
                ci95=accuracy_interval(right[chosen], groups),
            )
    return found or None


def _layers(
    model: LoweredModel, board: Board, counts: InstructionCounts | None
) -> tuple[Layer, ...]:
    cost = CostModel(board.cost, board.mhz) if board.cost else None
    counted = counts.by_function if counts else {}
    return tuple(_layer(record, counted.get(record.symbol), cost) for record in model.layers)


def _layer(record: LayerRecord, instructions: int | None, cost: CostModel | None) -> Layer:
    layer = Layer(
        id=record.id,
        name=record.name,
        op=record.op,
        attention=record.attention,
        macs=record.macs,
        instructions=instructions,
    )
    if cost is None or instructions is None:
        return layer
    cycles, energy = cost.cycles(instructions), cost.energy_uj(instructions)
    return layer.model_copy(
        update={
            "cycles": cycles.value,
            "cycles_bounds": cycles.bounds,
            "energy_uj": energy.value if energy else None,
        }
    )


def _share(right: NDArray[np.bool_]) -> float:
    return float(right.mean())
