"""Holding a device to the golden integers, output by output or layer by layer."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from entrain.deploy.device.client import Client
from entrain.deploy.errors import ModelError, ProtocolError
from entrain.deploy.lowering.artifact import LoweredModel, TensorRecord
from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.stage import GOLDEN_FILE
from entrain.deploy.lowering.tensors import buffers, unpacked


@dataclass(frozen=True)
class Divergence:
    """An element that differs.

    Attributes:
        inference: number of the golden input.
        element: its place in the ONNX tensor, whatever the order in which the device stores it.
    """

    inference: int
    element: tuple[int, ...]


@dataclass(frozen=True)
class Compared:
    """What a device computed of one layer, over all golden inputs.

    Attributes:
        name: of the layer.
        elements: how many were compared.
        differing: how many of them are not equal.
        largest: the largest difference, in steps.
        first: the first that differs; None if all are equal.
    """

    name: str
    elements: int
    differing: int
    largest: int
    first: Divergence | None

    def __str__(self) -> str:
        """What differs, for a person."""
        if self.first is None:
            return f"{self.name} is equal"
        return (
            f"{self.differing} of {self.elements} elements of {self.name} differ, by "
            f"{self.largest} steps at most; the first is {list(self.first.element)} of golden "
            f"input {self.first.inference}"
        )


def read_golden(folder: Path, model: LoweredModel) -> dict[str, Array]:
    """Every value's golden integers [N, ...], by the names of the model's tensors.

    Raises:
        ModelError: they are missing, damaged, or of another model.
    """
    path = folder / GOLDEN_FILE
    try:
        with np.load(path, allow_pickle=False) as stored:
            golden = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ModelError(
            f"the golden integers cannot be read ({error})",
            where=str(path),
            remedy="lower the model again with 'entrain lower'",
        ) from error
    wanted = {each.name for each in (*model.inputs, *model.layers)}
    if not wanted <= set(golden):
        raise ModelError(
            f"no golden integers of {', '.join(sorted(wanted - set(golden)))}",
            where=str(path),
            remedy="lower the model again with 'entrain lower'",
        )
    return golden


def compare_outputs(
    client: Client, model: LoweredModel, golden: dict[str, Array]
) -> tuple[Compared, ...]:
    """The model's outputs on the device, for every golden inference."""
    given = buffers(model.inputs, golden)
    answers = [_outputs(model, client.classify(one)) for one in given]
    return tuple(
        compared_with(
            output,
            [answer[output.name].tobytes() for answer in answers],
            golden[output.name],
        )
        for output in model.outputs
    )


def _outputs(model: LoweredModel, answer: bytes) -> dict[str, Array]:
    """Each output by name, of what the device sent."""
    size = sum(output.size for output in model.outputs)
    if len(answer) != size:
        raise _wrong_length(len(answer), "outputs", size)
    return unpacked(model.outputs, answer)


def compare_layers(
    client: Client, model: LoweredModel, golden: dict[str, Array]
) -> tuple[Compared, ...]:
    """Every layer on a device that runs a trace build, for every golden input.

    Raises:
        UsageError: it runs no trace build.
    """
    traces = [client.trace(one) for one in buffers(model.inputs, golden)]
    return tuple(
        compared_with(layer, [trace.get(layer.id, b"") for trace in traces], golden[layer.name])
        for layer in model.layers
    )


def first_divergence(compared: tuple[Compared, ...]) -> Compared | None:
    """The first layer, in the order in which they run, that differs; None if all are equal."""
    return next((each for each in compared if each.differing), None)


def compared_with(tensor: TensorRecord, answers: list[bytes], expected: Array) -> Compared:
    """What a device answered of one tensor beside its golden integers.

    Args:
        tensor: what the answers are.
        answers: bytes, one answer an inference.
        expected: integers [N, ...].

    Raises:
        ProtocolError: an answer is too short or too long.
    """
    elements = differing = largest = 0
    first = None
    for inference, (answer, wanted) in enumerate(zip(answers, expected, strict=True)):
        if len(answer) != wanted.nbytes:
            raise _wrong_length(len(answer), tensor.name, wanted.nbytes)
        steps = np.abs(np.frombuffer(answer, wanted.dtype).astype(int) - wanted.ravel())
        elements += steps.size
        differing += int(np.count_nonzero(steps))
        largest = max(largest, int(steps.max(initial=0)))
        if first is None and steps.any():
            first = Divergence(inference, tensor.place(int(np.argmax(steps > 0))))
    return Compared(tensor.name, elements, differing, largest, first)


def _wrong_length(sent: int, name: str, expected: int) -> ProtocolError:
    return ProtocolError(
        f"the device sent {sent} bytes of {name}, where {expected} are expected",
        remedy="flash the firmware of this run, then validate again",
    )
