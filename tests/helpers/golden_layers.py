"""Layers held to onnxruntime, each given onnxruntime's own inputs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.export import GOLDEN_FEATURES
from entrain.deploy.lowering.graph import LoweredGraph
from entrain.deploy.lowering.interpreter import run_layer


def check_layers(graph: LoweredGraph, golden: Path, given: Iterable[NDArray[np.int64]]) -> None:
    """Every layer is within a step of onnxruntime's, and nearly always the same.

    Args:
        graph: of a network with one input.
        golden: the file that ``write_golden_onnx`` wrote.
        given: the quantized inputs that it was written for.
    """
    differences: dict[str, list[NDArray[np.int64]]] = {layer.name: [] for layer in graph.layers}
    with np.load(golden) as arrays:
        assert set(arrays) >= {GOLDEN_FEATURES, *(x.output.onnx_output for x in graph.layers)}
        for k, features in zip(range(len(arrays[GOLDEN_FEATURES])), given, strict=False):
            values = {graph.input.name: features}
            for layer in graph.layers:
                boundary = arrays[layer.output.onnx_output][k]
                values[layer.name] = layer.output.from_onnx(boundary[None])
            for layer in graph.layers:
                theirs = values[layer.name].astype(int)
                differences[layer.name].append(np.abs(run_layer(layer, values) - theirs))
    for name, steps in differences.items():
        assert np.max(steps) <= 1, name
        # a fused attention rounds once; onnxruntime sums in single precision
        assert np.mean(np.equal(steps, 0)) > (0.98 if "context" in name else 0.99), name
