"""What a lowered network stands for: its file without the quantizers that lowering dropped."""

from __future__ import annotations

from pathlib import Path

from entrain.deploy.lowering.graph import LoweredGraph
from entrain.deploy.lowering.onnx_file import read_onnx, with_boundaries_as_outputs
from entrain.deploy.onnx_session import OnnxSession


def session_of(path: Path, graph: LoweredGraph) -> OnnxSession:
    """The file by onnxruntime; only values of the lowered network are quantized in it."""
    model = read_onnx(path)
    values = [*graph.inputs, *(layer.output for layer in graph.layers)]
    kept = {value.onnx_output for value in values}
    instead: dict[str, str] = {}
    constants = {tensor.name for tensor in model.graph.initializer}
    nodes = []
    for node in list(model.graph.node):
        node.input[:] = [instead.get(name, name) for name in node.input]
        dropped = node.op_type == "QuantizeLinear" and node.output[0] not in kept
        if (dropped and node.input[0] not in constants) or (
            node.op_type == "DequantizeLinear" and node.input[0] in instead.values()
        ):
            instead[node.output[0]] = node.input[0]
        else:
            nodes.append(node)
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)
    whole, _ = with_boundaries_as_outputs(model)
    return OnnxSession(whole.SerializeToString(), "unquantized inside")
