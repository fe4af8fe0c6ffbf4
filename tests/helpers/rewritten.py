"""Whether rewriting an ONNX file leaves its results as they are, by onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from entrain.deploy.lowering.onnx_file import read_onnx


def outputs(model: bytes, seed: int = 0) -> dict[str, np.ndarray]:
    """Every output for random inputs; a symbolic extent is 1, integers are small."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(seed)
    given = {}
    for source in session.get_inputs():
        shape = [extent if isinstance(extent, int) else 1 for extent in source.shape]
        if source.type == "tensor(float)":
            given[source.name] = random.normal(size=shape).astype(np.float32) * 3
        else:
            given[source.name] = random.integers(0, 3, shape)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, given), strict=True))


def check_unchanged(path: Path, atol: float = 0.0) -> None:
    """The file's outputs before and after rewriting are equal."""
    before = outputs(path.read_bytes())
    after = outputs(read_onnx(path).SerializeToString())
    for name, array in before.items():
        np.testing.assert_allclose(after[name], array, rtol=0, atol=atol, err_msg=name)


def operators(path: Path) -> list[str]:
    """The operators of the rewritten file."""
    return [node.op_type for node in read_onnx(path).graph.node]
