"""Reading an ONNX file safely, and what must hold before Relax sees it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from entrain.deploy.errors import ModelError, UnsupportedOperator
from entrain.deploy.lowering.onnx_rewrites import (
    REWRITTEN,
    computed_inputs,
    constants,
    describe_node,
    rewrite,
)
from entrain.deploy.lowering.onnx_rewrites.editing import opset

OPSETS = range(13, 26)
OTHER_FORMAT = ("QLinear", "ConvInteger", "MatMulInteger", "DynamicQuantize", "QAttention", "QGemm")


def read_onnx(path: Path) -> Any:
    """The checked model, with batch size 1 and in simpler terms (``onnx_rewrites``).

    Raises:
        ModelError: the file is missing, is no ONNX model, has weights outside its folder or a
            shape that is not static.
        UnsupportedOperator: a node has no integer form; the operator and the node are named.
    """
    import onnx
    import onnx.inliner

    if not path.is_file():
        raise ModelError("there is no such ONNX file", where=str(path), remedy="give its path")
    try:
        # the checker by path also refuses external data outside the model's folder
        onnx.checker.check_model(str(path))
        model = onnx.load(str(path))
    except Exception as error:  # onnx and protobuf share no base class of their errors
        text = str(error).strip().splitlines()
        raise ModelError(
            f"not a valid ONNX model: {text[0] if text else type(error).__name__}",
            where=str(path),
            remedy="export it again, for instance with 'entrain export'",
        ) from error
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    _check_opset(model, path)
    _fix_batch(model, path)
    try:
        rewrite(model)
    except UnsupportedOperator as error:
        raise UnsupportedOperator(error.what, where=str(path), remedy=error.remedy) from error
    _check_operators(model, path)
    return model


def _check_opset(model: Any, path: Path) -> None:
    version = opset(model)
    if version not in OPSETS:
        raise ModelError(
            f"it uses opset {version}, and opsets {OPSETS.start} to {OPSETS.stop - 1} are known",
            where=str(path),
            remedy="export it with opset 17",
        )


def _check_operators(model: Any, path: Path) -> None:
    from entrain.deploy.lowering.translations import ONNX_OPERATORS

    supported = "supported operators: " + ", ".join(sorted(ONNX_OPERATORS | REWRITTEN))
    for node in model.graph.node:
        if node.op_type not in ONNX_OPERATORS or node.domain not in ("", "ai.onnx"):
            other = node.op_type.startswith(OTHER_FORMAT)
            raise UnsupportedOperator(
                f"operator {node.op_type} of node {describe_node(node)} has no integer form here",
                where=str(path),
                remedy="quantize it in the format QDQ: QuantizeLinear, DequantizeLinear and "
                "ordinary operators between them"
                if other
                else supported,
            )


def _fix_batch(model: Any, path: Path) -> None:
    """A symbolic leading dimension becomes 1; any other is refused. Outputs follow."""
    for value in computed_inputs(model):
        dims = value.type.tensor_type.shape.dim
        if dims and not dims[0].dim_value:
            dims[0].dim_value = 1
        for axis, dim in enumerate(dims):
            if not dim.dim_value:
                raise ModelError(
                    f"axis {axis} of input {value.name} has no fixed extent",
                    where=str(path),
                    remedy="export with static shapes; only the batch may be dynamic",
                )

    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")


def boundaries(model: Any) -> Iterator[tuple[str, str]]:
    """(quantized tensor, node that computes what is quantized) of every computed QuantizeLinear."""
    known = set(constants(model))
    producers = {output: node for node in model.graph.node for output in node.output}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] not in known:
            producer = producers.get(node.input[0])
            yield node.output[0], describe_node(producer) if producer is not None else "input"


def with_boundaries_as_outputs(model: Any) -> tuple[Any, tuple[str, ...]]:
    """A copy that also returns every quantized tensor, and those tensors' names in order."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    inferred = onnx.shape_inference.infer_shapes(copy)
    types = {info.name: info for info in inferred.graph.value_info}
    names = tuple(name for name, _ in boundaries(model))
    outputs = {output.name for output in copy.graph.output}
    copy.graph.output.extend(
        types.get(name, onnx.helper.make_empty_tensor_value_info(name))
        for name in names
        if name not in outputs
    )
    return copy, names
