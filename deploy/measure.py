"""What a device answers and what this machine does, sample by sample, with the same model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic import quantize
from entrain.deploy.boards import Board
from entrain.deploy.device.client import Client
from entrain.deploy.device.counting import InstructionCounts
from entrain.deploy.errors import DeviceError, DeviceMissing, Mismatch, ProtocolError
from entrain.deploy.lowering.artifact import LoweredModel
from entrain.deploy.lowering.host import HostModel
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.network import read_network
from entrain.deploy.onnx_session import OnnxSession
from entrain.deploy.runs import Run

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
    graph = read_network(run.onnx, model.name)
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


def _median(counted: list[InstructionCounts]) -> InstructionCounts | None:
    return sorted(counted, key=lambda counts: counts.total)[len(counted) // 2] if counted else None
