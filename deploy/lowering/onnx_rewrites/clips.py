"""A narrowed range: QuantizeLinear and then Clip, as Brevitas writes fewer than eight bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.onnx_rewrites.editing import (
    Namer,
    add_constant,
    computed_inputs,
    constants,
    is_output,
    readers,
    replace_nodes,
)


def clip_before_quantizing(model: Any) -> None:
    """Clip reals, then quantize: rounding keeps the order, so both give the same integers.

    So every boundary is a QuantizeLinear. An input is quantized by whoever feeds the device: what
    it gives is dequantized, clipped and quantized anew.
    """
    arrays, names = constants(model), Namer(model)
    quantizers = {n.output[0]: n for n in model.graph.node if n.op_type == "QuantizeLinear"}
    inputs = {value.name for value in computed_inputs(model)}
    replacements = []
    for clip in model.graph.node:
        quantizer = quantizers.get(clip.input[0]) if clip.op_type == "Clip" else None
        if quantizer is None:
            continue
        bounds, scale = _bounds(clip, arrays), arrays.get(quantizer.input[1])
        if bounds is None or scale is None or scale.size != 1:
            continue  # refused later, as a DequantizeLinear of no QuantizeLinear
        zero = arrays[quantizer.input[2]].item() if len(quantizer.input) > 2 else 0
        reals = [np.float32((bound - zero) * scale.item()) for bound in bounds]
        fed = quantizer.input[0] in inputs
        replacements.append((clip, _clipped(model, quantizer, clip, reals, names, fed=fed)))
    replace_nodes(model, replacements)
    for node in list(model.graph.node):
        whole = node.op_type == "QuantizeLinear" and node.output[0]
        if whole and not readers(model, whole) and not is_output(model, whole):
            model.graph.node.remove(node)


def _bounds(node: Any, arrays: dict[str, Array]) -> tuple[float, float] | None:
    """The constant bounds of a Clip; infinite where absent, None where computed."""
    bounds = [-np.inf, np.inf]
    for k, name in enumerate(node.input[1:]):
        if name and name not in arrays:
            return None
        if name:
            bounds[k] = arrays[name].item()
    return bounds[0], bounds[1]


def _clipped(
    model: Any,
    quantizer: Any,
    clip: Any,
    bounds: list[np.float32],
    names: Namer,
    *,
    fed: bool,
) -> list[Any]:
    """A Clip to real bounds and a QuantizeLinear, in place of a Clip of integers."""
    from onnx import helper

    narrowed, source, nodes = clip.output[0], quantizer.input[0], []
    low, high = (
        add_constant(model, np.asarray(bound), names(f"{narrowed}_bound")) for bound in bounds
    )
    if fed:
        source = names(f"{narrowed}_fed")
        given = [quantizer.output[0], *quantizer.input[1:]]
        nodes.append(helper.make_node("DequantizeLinear", given, [source]))
    real = names(f"{narrowed}_real")
    nodes.append(helper.make_node("Clip", [source, low, high], [real], name=clip.name))
    given = [real, *quantizer.input[1:]]
    again = helper.make_node("QuantizeLinear", given, [narrowed], name=quantizer.name)
    again.attribute.extend(quantizer.attribute)
    return [*nodes, again]
