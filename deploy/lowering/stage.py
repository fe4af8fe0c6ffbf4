"""The stage ``lower``: an ONNX file becomes a folder of C, checked on this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
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
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.network import read_network
from entrain.deploy.lowering.onnx_comparison import compare_with_onnxruntime
from entrain.deploy.lowering.program import build_program
from entrain.deploy.lowering.tensors import one_of, random_integers

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
    the C compiled for this machine has to give the same, layer by layer; its outputs are compared
    with onnxruntime's. The folder appears when everything held; what stood there before is gone
    only then.

    Args:
        onnx: QCDQ ONNX, anyone's.
        folder: made if need be.
        task: the profile that the firmware announces.
        name: the model's name.
        features: golden inputs of a network with one input, real [N, ...]; without them, random
            integers from a fixed seed.

    Raises:
        ModelError: the file is not usable.
        UnsupportedOperator: a node has no integer form.
        ToolError: no C compiler here.
        Mismatch: C and interpreter differ, and the layer is named; or the outputs are far from
            onnxruntime's.
    """
    program = build_program(read_network(onnx, name))
    graph = program.graph
    golden = golden_values(graph, golden_inputs(graph, features))
    agreement = compare_with_onnxruntime(onnx, graph, golden)
    model = describe(program, task).model_copy(update={"onnxruntime": agreement})
    with replacing_folder(folder) as made:
        for file, text in emit_model(program, task, _origin(onnx)).files:
            write_whole(made / file, text)
        write_arrays(made / GOLDEN_FILE, golden)
        check_against_golden(model, made, golden)
        write_lowered(made, model)
    return model


def _origin(onnx: Path) -> tuple[str, ...]:
    """What read the file, and which one that was."""
    digest = hashlib.sha256(onnx.read_bytes()).hexdigest()
    return f"By entrain-edge {version('entrain-edge')}, from {onnx.name}", f"SHA-256 {digest}"


def golden_inputs(graph: LoweredGraph, features: Array | None) -> dict[str, Array]:
    """Integers [N, ...] of each input by name: the quantized features, or random ones."""
    if features is None:
        return random_integers(graph.inputs, GOLDEN_INPUTS)
    source = graph.input
    return {source.name: quantize(features, source.scale, source.zero_point, source.dtype)}


def golden_values(graph: LoweredGraph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Every value's integers for each inference, [N, ...] by name, from the numpy interpreter."""
    count = len(next(iter(inputs.values())))
    each = [interpret(graph, one_of(inputs, index)) for index in range(count)]
    return {name: np.stack([values[name] for values in each]) for name in each[0]}


def check_against_golden(model: LoweredModel, folder: Path, golden: dict[str, Array]) -> None:
    """Compare the C on this machine with golden integers, layer by layer.

    Raises:
        Mismatch: some layer differs; the first one is named, with how many of its elements.
    """
    host = HostModel(model, folder)
    count = len(golden[model.inputs[0].name])
    for index in range(count):
        traced = host.trace(one_of(golden, index))
        for layer in model.layers:
            differing = int((traced[layer.name] != golden[layer.name][index]).sum())
            if differing:
                raise Mismatch(
                    f"{differing} of {layer.size} elements of layer {layer.name} differ between "
                    "the C on this machine and the numpy interpreter",
                    where=f"{folder}, golden input {index}",
                    remedy="this is a fault of the lowering; please report it with the model",
                )
