"""From an ONNX file to the network that is compiled, interpreted and measured."""

from __future__ import annotations

from pathlib import Path

from entrain.deploy.lowering.fusion import AttentionRecogniser
from entrain.deploy.lowering.graph import LoweredGraph
from entrain.deploy.lowering.importer import import_onnx
from entrain.deploy.lowering.onnx_file import read_onnx
from entrain.deploy.lowering.passes import PASSES


def read_network(path: Path, name: str) -> LoweredGraph:
    """The network of an ONNX file in integers, its attention fused and every pass done.

    Args:
        path: QCDQ ONNX, anyone's.
        name: what the network is called from here on.

    Raises:
        ModelError: no usable ONNX model, or its input or output is not quantized.
        UnsupportedOperator: something has no integer form; operator, node and tensor are named.
    """
    graph = import_onnx(path, name, AttentionRecogniser(read_onnx(path)))
    for transformed in PASSES:
        graph = transformed(graph)
    return graph
