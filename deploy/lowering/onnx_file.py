"""Reading an ONNX file safely, and what must hold before Relax sees it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from entrain.deploy.errors import ModelError, concerning
from entrain.deploy.lowering.onnx_refusals import check_domains, check_operators, check_quantized
from entrain.deploy.lowering.onnx_rewrites import computed_inputs, constants, rewrite
from entrain.deploy.lowering.onnx_rewrites.editing import opset

OPSETS = range(13, 26)
BEGINNING = 40  # bytes of a text that are shown


def read_onnx(path: Path) -> Any:
    """The checked model, with batch size 1 and in simpler terms (``onnx_rewrites``).

    Raises:
        ModelError: the file is missing, is no ONNX model, has weights outside its folder, a shape
            that is not static, or no quantizers at all.
        UnsupportedOperator: a node has no integer form; the operator and the node are named.
    """
    import onnx.inliner

    model = load_onnx(path)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    _check_opset(model, path)
    _fix_batch(model, path)
    with concerning(str(path)):
        check_quantized(model)
        check_domains(model)
        rewrite(model)
        check_operators(model)
    return model


def load_onnx(path: Path) -> Any:
    """The model of a file as it is, with the weights that lie beside it.

    Raises:
        ModelError: the file is missing, is no ONNX model, or has weights outside its folder.
    """
    import onnx

    if not path.is_file():
        raise ModelError("there is no such ONNX file", where=str(path), remedy="give its path")
    try:
        # the checker by path also refuses external data outside the model's folder
        onnx.checker.check_model(str(path))
        return onnx.load(str(path))
    except Exception as error:  # onnx and protobuf share no base class of their errors
        raise ModelError(
            f"not a valid ONNX model: {_fault(path, error)}",
            where=str(path),
            remedy="export it again, or copy it again from where it is whole",
        ) from error


def _fault(path: Path, error: Exception) -> str:
    """What is wrong with a file that cannot be read."""
    size, text = path.stat().st_size, str(error).strip().splitlines()
    with path.open("rb") as file:
        beginning = file.read(BEGINNING).decode("ascii", "replace")
    if size == 0:
        return "the file is empty"
    if all(letter.isascii() and (letter.isprintable() or letter.isspace()) for letter in beginning):
        return f"{size:,} bytes of text, which begin with {beginning!r}"
    if not _is_protobuf(path):
        return f"{size:,} bytes that are cut short, or of another format"
    return text[0] if text else type(error).__name__


def _is_protobuf(path: Path) -> bool:
    """Whether a file has the outer form of an ONNX model."""
    import onnx

    try:
        onnx.load(str(path), load_external_data=False)
    except Exception:  # protobuf's errors are not onnx's to name
        return False
    return True


def _check_opset(model: Any, path: Path) -> None:
    version = opset(model)
    if version not in OPSETS:
        raise ModelError(
            f"it uses opset {version}, and opsets {OPSETS.start} to {OPSETS.stop - 1} are known",
            where=str(path),
            remedy="export it with opset 17",
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


def boundaries(model: Any) -> Iterator[tuple[str, Any | None]]:
    """Every quantized tensor, and the node that computes what is quantized; None of an input."""
    known = set(constants(model))
    producers = {output: node for node in model.graph.node for output in node.output}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] not in known:
            yield node.output[0], producers.get(node.input[0])


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
