"""Accuracy, time and energy of one model on one device, against the same model on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic import quantize
from entrain.deploy.boards import Board
from entrain.deploy.build import Firmware
from entrain.deploy.device.client import Client
from entrain.deploy.device.counting import InstructionCounts
from entrain.deploy.errors import DeviceError, DeviceMissing, Mismatch, ProtocolError
from entrain.deploy.lowering.artifact import LoweredModel
from entrain.deploy.lowering.host import HostModel
from entrain.deploy.lowering.importer import import_onnx
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.meters.modelled import CostModel
from entrain.deploy.onnx_session import OnnxSession
from entrain.deploy.results import Accuracy, Layer, Result, Subset
from entrain.deploy.runs import Run
from entrain.deploy.statistics import accuracy_interval, balanced_accuracy, confusion_matrix

Classes = NDArray[np.int64]
Integers = NDArray[Any]  # 8 bits wide

# Instructions depend a little on the input: the median of this many stands for all.
COUNTED_INPUTS = 5


@dataclass(frozen=True, eq=False)
class Samples:
    """What a model is measured on.

    Args:
        truth: true classes [N].
        groups: which group each is of, such as who speaks; None where each stands for itself.
        labels: the classes' names.
        subsets: bool [N] by name, for samples that are reported on their own too.
    """

    truth: Classes
    groups: tuple[str, ...] | None
    labels: tuple[str, ...]
    subsets: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.truth)


@dataclass(frozen=True, eq=False)
class Reference:
    """What this machine computes: the yardstick for every device.

    Args:
        inputs: the model's integer inputs [N, ...].
        outputs: its integer outputs [N, classes], of the C on this machine and of the numpy
            interpreter, which agree to the bit.
        onnx_classes: what onnxruntime answers [N].
        float_classes: what the trained network answers [N], if there is one.
    """

    inputs: Integers
    outputs: Integers
    onnx_classes: Classes
    float_classes: Classes | None


@dataclass(frozen=True, eq=False)
class Answers:
    """What a device answered.

    Args:
        outputs: integers [n, classes] of the first n inputs.
        counts: instructions of the input with the median total, if the device counts them.
        lost: how the device was lost, if it was.
    """

    outputs: Integers
    counts: InstructionCounts | None
    lost: DeviceError | None


def reference(
    run: Run,
    model: LoweredModel,
    features: NDArray[Any],
    float_classes: Classes | None,
    on_sample: Callable[[], None],
) -> Reference:
    """Compute every sample on this machine in three ways: C, numpy integers, onnxruntime.

    Args:
        run: the run's folder, with model.onnx and the lowered model.
        model: the lowered model.
        features: what the network reads [N, ...]: reals, or integers as they are.
        float_classes: what the trained network answers, if there is one.
        on_sample: called after each sample.

    Raises:
        Mismatch: the C differs from the integers of the numpy interpreter.
    """
    graph = import_onnx(run.onnx, model.name)
    host = HostModel(model, run.lowered)
    session = OnnxSession(run.onnx, str(run.onnx))
    source = model.input
    inputs = quantize(features, source.scale, source.zero_point, source.dtype)
    outputs, classes = [], []
    for index, (one, real) in enumerate(zip(inputs, features, strict=True)):
        integers = host.run(one).reshape(-1)
        if not np.array_equal(integers, interpret(graph, one)[graph.output.name].reshape(-1)):
            raise Mismatch(
                f"input {index}: the C on this machine and the numpy interpreter differ",
                where=str(run.lowered),
                remedy="lower the model again; if that repeats, please report it with the model",
            )
        outputs.append(integers)
        classes.append(int(session.predict(real[None])[0]))
        on_sample()
    return Reference(inputs, np.stack(outputs), np.asarray(classes, np.int64), float_classes)


def check_board(client: Client, board: Board) -> None:
    """Make sure that the device is that board: sizes and costs in the row are the board's.

    Raises:
        DeviceMissing: it is another.
        DeviceError: it does not answer.
    """
    answered = client.name()
    if answered != board.name:
        raise DeviceMissing(
            f"the device answers as {answered!r}, not as the board {board.name}",
            remedy="name its board with --boards, or flash it with that board's firmware",
        )


def check_model(client: Client, name: str) -> None:
    """Make sure that the device runs the model of that name.

    Raises:
        DeviceMissing: it runs another.
        DeviceError: it does not answer.
    """
    firmware = client.profile().firmware
    if not firmware.endswith(f" {name}"):
        raise DeviceMissing(
            f"the device runs {firmware!r}, not the model {name}",
            remedy=f"flash it (entrain flash --run {name}); a serial port takes one run at a time",
        )


def ask_device(
    client: Client,
    inputs: Integers,
    classes: int,
    on_sample: Callable[[], None],
    is_stopped: Callable[[], bool],
) -> Answers:
    """Let the device classify every input; what it answered before it was lost is kept.

    Args:
        client: the device.
        inputs: the model's integer inputs [N, ...].
        classes: how many outputs it has.
        on_sample: called after each answer.
        is_stopped: asked before each input whether to leave it at that.
    """
    outputs = np.zeros((len(inputs), classes), np.int8)
    counted: list[InstructionCounts] = []
    for index, one in enumerate(inputs):
        if is_stopped():
            return Answers(outputs[:index], _median(counted), None)
        try:
            raw = client.classify(one.tobytes())
            if len(raw) != classes:
                raise ProtocolError(
                    f"the device answers with {len(raw)} outputs, and the model has {classes}",
                    remedy="bytes were lost on the line: check it, then measure again",
                )
            if client.counts_instructions and len(counted) < COUNTED_INPUTS:
                counted.append(client.counts())
        except DeviceError as error:
            return Answers(outputs[:index], _median(counted), error)
        outputs[index] = np.frombuffer(raw, np.int8)
        on_sample()
    return Answers(outputs, _median(counted), None)


def classes_of(outputs: Integers) -> Classes:
    """The class with the largest output; the first of several, as on the host."""
    largest: Classes = outputs.argmax(axis=1).astype(np.int64)
    return largest


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
    layers = []
    for record in model.layers:
        instructions = counts.by_function.get(record.symbol) if counts else None
        energy = cost.energy_uj(instructions) if cost and instructions is not None else None
        layers.append(
            Layer(
                id=record.id,
                name=record.name,
                op=record.op,
                macs=record.macs,
                instructions=instructions,
                energy_uj=energy.value if energy else None,
            )
        )
    return tuple(layers)


def _median(counted: list[InstructionCounts]) -> InstructionCounts | None:
    return sorted(counted, key=lambda counts: counts.total)[len(counted) // 2] if counted else None


def _share(right: NDArray[np.bool_]) -> float:
    return float(right.mean())
