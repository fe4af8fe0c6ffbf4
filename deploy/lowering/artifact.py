"""layers.json: what stands in a lowered folder, for whoever builds, runs or reads it.

The file is written last, so where it stands the folder is whole.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from entrain.deploy.errors import ModelError
from entrain.deploy.files import write_whole
from entrain.deploy.lowering.graph import Value
from entrain.deploy.lowering.operators.heads import AttentionOperator
from entrain.deploy.lowering.program import Program
from entrain.deploy.lowering.tensors import sole

FILE = "layers.json"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TensorRecord(_Record):
    """An 8-bit tensor: ``real = scale * (q - zero_point)``.

    Axis k is axis ``axes[k]`` of the ONNX tensor; null: they are in the same order.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float
    zero_point: int
    onnx_outputs: tuple[str, ...]
    axes: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """Elements, and bytes."""
        return prod(self.shape)

    def place(self, element: int) -> tuple[int, ...]:
        """Where the element that is stored at this place stands in the ONNX tensor."""
        stored = [int(index) for index in np.unravel_index(element, self.shape)]
        axes = range(len(stored)) if self.axes is None else self.axes
        return tuple(index for _, index in sorted(zip(axes, stored, strict=True)))


class LayerRecord(TensorRecord):
    """A layer by what it writes. ``offset`` in the arena is null for the model's outputs.

    ``attention`` says whether it is an attention as one operator.
    """

    id: int
    op: str
    attention: bool
    macs: int
    offset: int | None

    @property
    def symbol(self) -> str:
        """The layer's C function."""
        return f"layer_{self.name}"


class Agreement(_Record):
    """The outputs for all golden inputs beside onnxruntime's, in steps of the outputs' scales."""

    elements: int
    differing: int
    largest_steps: int


class LoweredModel(_Record):
    """A lowered network without its weights.

    ``onnxruntime`` is null where onnxruntime could not run the file.
    """

    name: str
    task: str
    inputs: tuple[TensorRecord, ...]
    outputs: tuple[TensorRecord, ...]
    layers: tuple[LayerRecord, ...]
    arena_bytes: int
    arena_bound: int
    onnxruntime: Agreement | None = None

    @property
    def input(self) -> TensorRecord:
        """The only input; ModelError if there are several."""
        return sole(self.inputs, "input")

    @property
    def output(self) -> TensorRecord:
        """The only output; ModelError if there are several."""
        return sole(self.outputs, "output")

    @property
    def macs(self) -> int:
        """Multiply-adds of one inference."""
        return sum(layer.macs for layer in self.layers)


def describe(program: Program, task: str) -> LoweredModel:
    """The record of a lowered network."""
    graph, plan = program.graph, program.plan
    outputs = {value.name for value in graph.outputs}
    layers = tuple(
        LayerRecord(
            **_fields(layer.output),
            id=index,
            op=layer.title,
            attention=isinstance(layer.expression.operator, AttentionOperator),
            macs=layer.macs,
            offset=None if layer.output.name in outputs else plan.offset(layer.name),
        )
        for index, layer in enumerate(graph.layers)
    )
    return LoweredModel(
        name=graph.name,
        task=task,
        inputs=tuple(TensorRecord(**_fields(value)) for value in graph.inputs),
        outputs=tuple(TensorRecord(**_fields(value)) for value in graph.outputs),
        layers=layers,
        arena_bytes=plan.arena_bytes,
        arena_bound=plan.bound,
    )


def _fields(value: Value) -> dict[str, Any]:
    return {
        "name": value.name,
        "shape": value.shape,
        "dtype": value.dtype,
        "scale": value.scale,
        "zero_point": value.zero_point,
        "onnx_outputs": (value.onnx_output,),
        "axes": value.axes,
    }


def write_lowered(folder: Path, model: LoweredModel) -> None:
    """Write layers.json, whole."""
    write_whole(folder / FILE, model.model_dump_json(indent=1) + "\n")


def read_lowered(folder: Path) -> LoweredModel:
    """Read layers.json.

    Raises:
        ModelError: the folder holds no whole lowered model.
    """
    path = folder / FILE
    if not path.is_file():
        raise ModelError(
            "no lowered model here", where=str(folder), remedy="make one with 'entrain lower'"
        )
    try:
        return LoweredModel.model_validate_json(path.read_text(encoding="utf-8"))
    except (ValidationError, OSError, UnicodeDecodeError) as error:
        raise ModelError(
            "damaged, or written by another version",
            where=str(path),
            remedy="lower the model again with 'entrain lower'",
        ) from error
