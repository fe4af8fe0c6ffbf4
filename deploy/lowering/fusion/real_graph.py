"""A QCDQ network as the real-valued function that it approximates: its quantizers left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.onnx_rewrites import constants

# by their output names; what a network does to integers on the way is moving them about
_PASSED = ("QuantizeLinear", "DequantizeLinear")


@dataclass(frozen=True)
class RealGraph:
    """Nodes over real tensors; every computed quantizer is gone, every constant is known.

    Attributes:
        nodes: in an order in which they can run, none of them constant.
        producers: the node that computes a tensor.
        constants: arrays by name, those behind a DequantizeLinear among them.
        quantized: the real tensor that a QuantizeLinear reads, by the quantized tensor's name.
        opset: of the model.
        ir_version: of the model.
    """

    nodes: tuple[Any, ...]
    producers: dict[str, Any]
    constants: dict[str, Array]
    quantized: dict[str, str]
    opset: int
    ir_version: int


def real_graph(model: Any) -> RealGraph:
    """The real-valued graph of a model that :func:`read_onnx` has read."""
    known = _known(model)
    alias: dict[str, str] = {}
    quantized: dict[str, str] = {}
    nodes: list[Any] = []
    for node in model.graph.node:
        if node.output[0] in known:
            continue
        inputs = [alias.get(name, name) for name in node.input]
        if node.op_type in _PASSED:
            alias[node.output[0]] = inputs[0]
            if node.op_type == "QuantizeLinear":
                quantized[node.output[0]] = inputs[0]
            continue
        real = type(node)()
        real.CopyFrom(node)
        real.input[:] = inputs
        nodes.append(real)
    producers = {output: node for node in nodes for output in node.output}
    opset = max(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    return RealGraph(tuple(nodes), producers, known, quantized, opset, model.ir_version)


def _known(model: Any) -> dict[str, Array]:
    """Every tensor that does not depend on the input, evaluated by onnxruntime."""
    import onnx
    from onnx import helper

    from entrain.deploy.onnx_session import session_of

    known = constants(model)
    folded: list[Any] = []
    names = set(known)
    for node in model.graph.node:
        if node.op_type != "Constant" and all(not name or name in names for name in node.input):
            folded.append(node)
            names.update(node.output)
    if not folded:
        return known
    needed = list(model.graph.initializer)
    needed += [onnx.numpy_helper.from_array(array, name) for name, array in _embedded(model)]
    outputs = [helper.make_empty_tensor_value_info(name) for n in folded for name in n.output]
    graph = helper.make_graph(folded, "constants", [], outputs, initializer=needed)
    whole = helper.make_model(graph, opset_imports=model.opset_import)
    whole.ir_version = model.ir_version
    arrays = session_of(whole.SerializeToString(), "the model's constants").run(None, {})
    return {**known, **dict(zip((o.name for o in outputs), map(np.asarray, arrays), strict=True))}


def _embedded(model: Any) -> list[tuple[str, Array]]:
    """The arrays of Constant nodes."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    return [(name, array) for name, array in constants(model).items() if name not in initializers]
