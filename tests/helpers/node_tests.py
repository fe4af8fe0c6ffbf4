"""ONNX's own tests of single nodes, with quantizers around the node."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSETS = range(13, 26)
PRODUCTS = {"Conv", "MatMul", "Gemm"}
LARGEST = 4096  # elements: what is larger shows nothing more


@dataclass(frozen=True)
class QuantizedNode:
    """A node test whose reals became integers.

    Attributes:
        name: of the ONNX test.
        model: the node between QuantizeLinear and DequantizeLinear.
        inputs: the integers of each activation.
        expected: what the node's outputs are, real, by the test.
        step: of the outputs' integers, coarse enough for the rounding of the inputs.
    """

    name: str
    model: Any
    inputs: tuple[np.ndarray, ...]
    expected: tuple[np.ndarray, ...]
    step: float


def node_tests(module: str) -> Iterator[QuantizedNode]:
    """The tests of one operator: a module of ``onnx.backend.test.case.node``."""
    import onnx.backend.test.case.node as cases

    before = len(cases._NodeTestCases)
    np.random.seed(0)
    with np.errstate(divide="ignore"):  # some of the tests are about infinity
        importlib.import_module(f"onnx.backend.test.case.node.{module}")
    for case in cases._NodeTestCases[before:]:
        inputs, outputs = case.data_sets[0]
        node, version = case.model.graph.node[0], _opset(case)
        if "expanded" not in case.name and version in OPSETS and _usable(node, inputs, outputs):
            yield _quantized(case, inputs, outputs)


def _usable(node: Any, inputs: list[Any], outputs: list[Any]) -> bool:
    """Tensors, not sequences; reals, or integers that only move; not empty, not huge."""
    arrays = [*inputs, *outputs]
    if not all(isinstance(array, np.ndarray | np.generic) for array in arrays):
        return False
    kinds = ("f",) if node.op_type not in {"Pad", "MaxPool"} else ("f", "i", "u")
    return (
        inputs[0].dtype.kind in kinds
        and inputs[0].dtype != np.float64
        and all(np.size(array) > 0 for array in (inputs[0], *outputs))
        and all(np.size(array) <= LARGEST for array in arrays)
    )


def _quantized(case: Any, inputs: list[Any], outputs: list[Any]) -> QuantizedNode:
    node = type(case.model.graph.node[0])()
    node.CopyFrom(case.model.graph.node[0])
    if node.op_type in _ASIDES:
        del node.output[1:]
        outputs = outputs[:1]
    nodes, constants, sources, given, reaches = [], [], [], [], []
    for place, (name, array) in enumerate(zip(_inputs(node), inputs, strict=True)):
        weights = node.op_type in PRODUCTS and place == 1
        activation = place == 0 or (node.op_type in _SYMMETRIC and place > 0)
        if not activation and not weights:
            constants.append(numpy_helper.from_array(np.asarray(array), name))
            continue
        reals = np.asarray(array, np.float32)
        step, dtype = _step(reals)
        integers = np.rint(reals / np.float32(step)).astype(dtype)
        reaches.append((step, float(np.abs(reals).max())))
        constants += [
            numpy_helper.from_array(np.float32(step), f"{name}_step"),
            numpy_helper.from_array(np.asarray(0, dtype), f"{name}_zero"),
        ]
        parameters = [f"{name}_step", f"{name}_zero"]
        if weights:
            constants.append(numpy_helper.from_array(integers, f"{name}_integers"))
        else:
            sources.append(
                helper.make_tensor_value_info(f"{name}_real", TensorProto.FLOAT, reals.shape)
            )
            given.append(integers)
            nodes.append(
                helper.make_node(
                    "QuantizeLinear", [f"{name}_real", *parameters], [f"{name}_integers"]
                )
            )
        nodes.append(
            helper.make_node("DequantizeLinear", [f"{name}_integers", *parameters], [name])
        )
    expected = tuple(np.asarray(array, np.float64) for array in outputs)
    step = _output_step(node.op_type, reaches, inputs, expected)
    nodes.append(node)
    constants.append(numpy_helper.from_array(np.float32(step), "output_step"))
    constants.append(numpy_helper.from_array(np.int8(0), "output_zero"))
    results = []
    for name, array in zip(node.output, expected, strict=True):
        parameters = ["output_step", "output_zero"]
        nodes.append(helper.make_node("QuantizeLinear", [name, *parameters], [f"{name}_integers"]))
        read = [f"{name}_integers", *parameters]
        nodes.append(helper.make_node("DequantizeLinear", read, [f"{name}_real"]))
        results.append(
            helper.make_tensor_value_info(f"{name}_real", TensorProto.FLOAT, array.shape)
        )
    graph = helper.make_graph(nodes, case.name, sources, results, initializer=constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _opset(case))])
    model.ir_version = 8
    return QuantizedNode(case.name, model, tuple(given), expected, step)


_ASIDES = {"LayerNormalization"}  # operators whose further outputs serve training
_SYMMETRIC = {"Concat", "Add", "Sub", "Mul", "Sum", "Mean", "Max", "Min"}


def _opset(case: Any) -> int:
    return max(entry.version for entry in case.model.opset_import)


def _inputs(node: Any) -> list[str]:
    return [name for name in node.input if name]


def _step(reals: np.ndarray) -> tuple[float, str]:
    """Whole numbers keep the step 1; other reals use the whole range."""
    dtype = "int8" if reals.min() < 0 else "uint8"
    largest, limit = float(np.abs(reals).max()), np.iinfo(dtype).max
    if largest <= limit and np.array_equal(reals, np.rint(reals)):
        return 1.0, dtype
    return largest / limit, dtype


def _output_step(
    operator: str, reaches: list[tuple[float, float]], inputs: list[Any], expected: Any
) -> float:
    """No finer than twice the error that the inputs' rounding makes."""
    errors = [0.0 if step == 1.0 else step / 2 for step, _ in reaches]
    error = sum(errors)
    if operator in PRODUCTS:
        (_, x), (_, w) = reaches
        weights = inputs[1]
        summed = np.size(weights) // weights.shape[0] if operator == "Conv" else inputs[0].size
        error = summed * (errors[0] * w + errors[1] * x)
    elif operator == "Mul":
        (_, a), (_, b) = reaches
        error = errors[0] * b + errors[1] * a
    elif operator == "LayerNormalization":
        error *= 2 * float(np.abs(inputs[1]).max() / np.std(inputs[0]))
    elif operator == "ReduceSum":
        error *= inputs[0].size
    largest = max(float(np.abs(array).max()) for array in expected)
    return max(largest / 127, 2 * error, 1e-6)
