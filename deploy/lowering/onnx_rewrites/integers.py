"""Four-bit integers become eight-bit ones: a firmware reads whole bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.lowering.onnx_rewrites.editing import (
    Namer,
    add_constant,
    attributes,
    replace_nodes,
    with_attributes,
)


@dataclass(frozen=True)
class _Narrow:
    """A four-bit type by the names of ONNX, the type that holds it, and its range."""

    name: str
    wider: str
    low: int
    high: int


_NARROW = (_Narrow("INT4", "INT8", -8, 7), _Narrow("UINT4", "UINT8", 0, 15))


def widen_narrow_integers(model: Any) -> None:
    """INT4 and UINT4 become INT8 and UINT8; what quantizes to four bits gets a Clip behind it."""
    for kind in _NARROW:
        _widen(model, kind)


def _widen(model: Any, kind: _Narrow) -> None:
    from onnx import TensorProto, numpy_helper

    narrow, wider = TensorProto.DataType.Value(kind.name), TensorProto.DataType.Value(kind.wider)
    stored = [*model.graph.initializer]
    stored += [a.t for node in model.graph.node for a in node.attribute if a.HasField("t")]
    widened = set()
    for tensor in stored:
        if tensor.data_type == narrow:
            array = numpy_helper.to_array(tensor).astype(kind.wider.lower())
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
            widened.add(tensor.name)
    for value in (*model.graph.value_info, *model.graph.output):
        if value.type.tensor_type.elem_type == narrow:
            value.type.tensor_type.elem_type = wider
    _clip_quantizers(model, kind, widened, narrow, wider)


def _clip_quantizers(model: Any, kind: _Narrow, widened: set[str], narrow: int, wider: int) -> None:
    """A Clip to the four bits behind each QuantizeLinear that wrote them."""
    from onnx import helper

    names, replacements = Namer(model), []
    for node in model.graph.node:
        given = attributes(node).get("output_dtype") == narrow
        if node.op_type != "QuantizeLinear" or not (given or widened.intersection(node.input)):
            continue
        whole, bounds = names(f"{node.output[0]}_whole"), np.asarray([kind.low, kind.high])
        low, high = (
            add_constant(model, bound, names(f"{node.output[0]}_bound"))
            for bound in bounds.astype(kind.wider.lower())
        )
        quantizer = type(node)()
        quantizer.CopyFrom(node)
        quantizer.output[0] = whole
        if given:
            with_attributes(quantizer, output_dtype=wider)
        clip = helper.make_node("Clip", [whole, low, high], list(node.output), name=node.name)
        replacements.append((node, (quantizer, clip)))
    replace_nodes(model, replacements)
