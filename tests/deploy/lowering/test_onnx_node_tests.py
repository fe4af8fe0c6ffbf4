"""ONNX's own tests of single nodes, quantized: their outputs are the oracle."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from node_tests import node_tests

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.importer import import_onnx
from entrain.deploy.lowering.interpreter import interpret

# a module of ONNX's tests each, and how many of its tests lower: none gets lost unnoticed
LOWERED = {
    **{"conv": 6, "matmul": 7, "gemm": 11},
    **{"maxpool": 13, "averagepool": 14, "globalaveragepool": 2, "globalmaxpool": 2},
    **{"gather": 4, "slice": 7, "split": 14, "pad": 6, "concat": 12},
    **{"transpose": 7, "reshape": 9, "flatten": 9, "squeeze": 2, "unsqueeze": 7},
    **{"expand": 2, "tile": 1, "identity": 1, "dropout": 2},
    **{"add": 2, "sub": 3, "mul": 3, "sum": 3, "mean": 3, "max": 5, "min": 5},
    **{"reducesum": 10, "reducemean": 8, "reducemax": 8, "reducemin": 8},
    **{"relu": 1, "clip": 9, "softmax": 7, "gelu": 4, "layernormalization": 19},
    **{"batch_normalization": 2, "hardswish": 1, "hardsigmoid": 3},
}
# what of a module is refused, in which words
REFUSED = {
    "maxpool": "asks MaxPool for indices|max_pool3d has no integer form",
    "averagepool": "avg_pool3d has no integer form",
    "dropout": "a Dropout that drops",
    "batch_normalization": "normalizes a batch by its own statistics",
}


@pytest.mark.parametrize("module", LOWERED)
def test_a_node_gives_what_its_onnx_tests_say(module, tmp_path):
    lowered = 0
    for test in node_tests(module):
        path = tmp_path / f"{test.name}.onnx"
        onnx.save(test.model, path)
        try:
            graph = import_onnx(path, "node")
        except UnsupportedOperator as error:
            if re.search(REFUSED.get(module, "nothing"), error.what):
                continue
            raise
        names = (value.name for value in graph.inputs)
        values = interpret(graph, dict(zip(names, test.inputs, strict=True)))
        for value, expected in zip(graph.outputs, test.expected, strict=True):
            assert value.shape == expected.shape, test.name
            steps = values[value.name] - expected / test.step
            assert np.abs(steps).max() <= 1 + 1e-3, test.name
        lowered += 1
    assert lowered == LOWERED[module]
