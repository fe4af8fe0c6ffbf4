"""Quantize what a Concat or a MaxPool reads, not only what it writes.

Both keep every element as it is, so quantizing before them gives the same integers. What computes
the elements becomes a layer of its own then, and the Concat or MaxPool moves bytes.
"""

from __future__ import annotations

from typing import Any

from entrain.deploy.lowering.onnx_rewrites.editing import (
    Namer,
    constants,
    is_output,
    producers,
    readers,
    replace_nodes,
)

_KEEPING = {"Concat", "MaxPool"}
_MOVING = {
    *("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand", "Tile"),
    *("Slice", "Gather", "Identity", "Concat", "MaxPool"),
}


def quantize_early(model: Any) -> None:
    """Put QuantizeLinear and DequantizeLinear before each Concat and MaxPool that needs them."""
    made_by, arrays = producers(model), constants(model)
    names, replacements = Namer(model), []
    for node in model.graph.node:
        quantizer = _only_reader(model, node) if node.op_type in _KEEPING else None
        if quantizer is None:
            continue
        before = []
        for place, name in enumerate(node.input):
            if name not in arrays and not _is_quantized(name, made_by):
                pair = _pair(quantizer, name, names)
                node.input[place] = pair[-1].output[0]
                before += pair
        replacements.append((node, [*before, node]))
    replace_nodes(model, replacements)


def _only_reader(model: Any, node: Any) -> Any | None:
    """The QuantizeLinear that alone reads what a node writes, if that is so."""
    output = node.output[0]
    found = readers(model, output)
    if len(found) == 1 and found[0].op_type == "QuantizeLinear" and not is_output(model, output):
        return found[0]
    return None


def _is_quantized(name: str, made_by: dict[str, Any]) -> bool:
    """Whether a tensor is dequantized integers, moved about at most."""
    node = made_by.get(name)
    while node is not None and node.op_type in _MOVING:
        node = made_by.get(node.input[0])
    return node is not None and node.op_type == "DequantizeLinear"


def _pair(quantizer: Any, name: str, names: Namer) -> list[Any]:
    """The same quantization of another tensor."""
    from onnx import helper

    integers, reals = names(f"{name}_quantized"), names(f"{name}_dequantized")
    parameters = list(quantizer.input[1:])
    first = helper.make_node("QuantizeLinear", [name, *parameters], [integers])
    first.attribute.extend(quantizer.attribute)
    second = helper.make_node("DequantizeLinear", [integers, *parameters], [reals])
    second.attribute.extend(a for a in quantizer.attribute if a.name == "axis")
    return [first, second]
