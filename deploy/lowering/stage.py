"""The stage ``lower``: an ONNX file becomes a folder of C, checked on this machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from entrain.deploy.arithmetic import quantize
from entrain.deploy.arrays import write_arrays
from entrain.deploy.errors import Mismatch
from entrain.deploy.files import replacing_folder, write_whole
from entrain.deploy.lowering.artifact import LoweredModel, describe, write_lowered
from entrain.deploy.lowering.emit import emit_model
from entrain.deploy.lowering.graph import Array, LoweredGraph
from entrain.deploy.lowering.host import HostModel
from entrain.deploy.lowering.importer import import_onnx
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.program import build_program

GOLDEN_FILE = "golden.npz"
GOLDEN_INPUTS = 8


def lower(
    onnx: Path,
    folder: Path,
    *,
    task: str,
    name: str,
    features: Array | None = None,
) -> LoweredModel:
    """Lower an ONNX file into ``folder``: its C, layers.json, schedule.json.

    golden.npz gets every layer's integers for the golden inputs, from the numpy interpreter, and
    the C compiled for this machine has to give the same, layer by layer. The folder appears when
    everything held; what stood there before is gone only then.

    Args:
        onnx: QCDQ ONNX, anyone's.
        folder: made if need be.
        task: the profile that the firmware announces.
        name: the model's name.
        features: golden inputs, real [N, ...]; without them, random integers from a fixed seed.

    Raises:
        ModelError: the file is not usable.
        UnsupportedOperator: a node has no integer form.
        ToolError: no C compiler here.
        Mismatch: C and interpreter differ; the layer is named.
    """
    program = build_program(import_onnx(onnx, name))
    graph = program.graph
    source = graph.input
    if features is None:
        inputs = random_inputs(graph)
    else:
        inputs = quantize(features, source.scale, source.zero_point, source.dtype)
    golden = golden_values(graph, inputs)
    model = describe(program, task)
    with replacing_folder(folder) as made:
        for file, text in emit_model(program, task).files:
            write_whole(made / file, text)
        write_arrays(made / GOLDEN_FILE, golden)
        check_against_golden(model, made, golden)
        write_lowered(made, model)
    return model


def random_inputs(graph: LoweredGraph) -> Array:
    """Integers over the whole range of the input's type, from a fixed seed."""
    limits = np.iinfo(graph.input.dtype)
    shape = (GOLDEN_INPUTS, *graph.input.shape)
    random = np.random.default_rng(0)
    return random.integers(limits.min, limits.max, shape, endpoint=True, dtype=graph.input.dtype)


def golden_values(graph: LoweredGraph, inputs: Array) -> dict[str, Array]:
    """Every value's integers for each input, [N, ...] by name, from the numpy interpreter."""
    each = [interpret(graph, one) for one in inputs.astype(graph.input.dtype)]
    return {name: np.stack([values[name] for values in each]) for name in each[0]}


def check_against_golden(model: LoweredModel, folder: Path, golden: dict[str, Array]) -> None:
    """Compare the C on this machine with golden integers, layer by layer.

    Raises:
        Mismatch: some layer differs; the first one is named, with how many of its elements.
    """
    host = HostModel(model, folder)
    for index, one in enumerate(golden[model.input.name]):
        traced = host.trace(one)
        for layer in model.layers:
            differing = int((traced[layer.name] != golden[layer.name][index]).sum())
            if differing:
                raise Mismatch(
                    f"{differing} of {layer.size} elements of layer {layer.name} differ between "
                    "the C on this machine and the numpy interpreter",
                    where=f"{folder}, golden input {index}",
                    remedy="this is a fault of the lowering; please report it with the model",
                )
