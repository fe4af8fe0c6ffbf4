"""The numpy interpreter of a lowered network: the integers that every other form must equal."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from entrain.deploy.lowering.graph import Array, Layer, LoweredGraph
from entrain.deploy.lowering.operators.leaves import Load
from entrain.deploy.lowering.tensors import Given, by_name


def run_layer(layer: Layer, values: Mapping[str, Array]) -> Array:
    """A layer's integers, given those of the values that it reads, by name."""
    results: dict[int, Array] = {}
    for node in layer.expression.walk():
        if isinstance(node.operator, Load):
            results[id(node)] = values[node.operator.value.name]
        else:
            operands = [results[id(operand)] for operand in node.operands]
            results[id(node)] = node.operator.reference(*operands)
    return np.asarray(results[id(layer.expression)], order="C")


def interpret(graph: LoweredGraph, quantized: Given) -> dict[str, Array]:
    """Every layer's integers for one inference, by layer name, the inputs' own included.

    Args:
        graph: the lowered network.
        quantized: integers of the inputs by name, or of the only input.
    """
    values = by_name(graph.inputs, quantized)
    for layer in graph.layers:
        values[layer.output.name] = run_layer(layer, values)
    return values
