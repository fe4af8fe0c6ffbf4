"""An ONNX model in simpler terms, with the same results: what Relax or the lowering cannot take."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator


def rewrite(model: Any) -> None:
    """Rewrite in place: no Clip of constants or of integers, and no automatic padding.

    Raises:
        UnsupportedOperator: the input's range is narrowed.
    """
    _fold_weight_clips(model)
    _clip_before_quantizing(model)
    _pad_explicitly(model)


def describe_node(node: Any) -> str:
    """A node's name, or its first output where it has none."""
    return node.name or f"(unnamed, writes {node.output[0]})"


def computed_inputs(model: Any) -> list[Any]:
    """The graph's inputs without its initializers, which older files list among them."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initializers]


def constants(model: Any) -> dict[str, Any]:
    """Every array that the file holds, by name."""
    from onnx import numpy_helper

    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            arrays[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return arrays


def _fold_weight_clips(model: Any) -> None:
    """Brevitas writes constant, Clip, DequantizeLinear; the clip of a constant is a constant."""
    from onnx import numpy_helper

    arrays = constants(model)
    for node in list(model.graph.node):
        if node.op_type == "Clip" and node.input[0] in arrays:
            bounds = _clip_bounds(node, arrays)
            if bounds is not None:
                whole = arrays[node.input[0]]
                clipped = np.clip(whole, *bounds).astype(whole.dtype)
                model.graph.initializer.append(numpy_helper.from_array(clipped, node.output[0]))
                model.graph.node.remove(node)


def _clip_bounds(node: Any, arrays: dict[str, Any]) -> tuple[float, float] | None:
    """The constant bounds of a Clip; infinite where absent, None where computed."""
    bounds = [-np.inf, np.inf]
    for k, name in enumerate(node.input[1:]):
        if name and name not in arrays:
            return None
        if name:
            bounds[k] = arrays[name].item()
    return bounds[0], bounds[1]


def _clip_before_quantizing(model: Any) -> None:
    """QuantizeLinear and then Clip (a narrowed range) become a Clip of reals, then QuantizeLinear.

    Rounding is monotonic, so both give the same integers; and every boundary is a QuantizeLinear.
    """
    arrays = constants(model)
    nodes = list(model.graph.node)
    quantizers = {node.output[0]: node for node in nodes if node.op_type == "QuantizeLinear"}
    inputs = {value.name for value in computed_inputs(model)}
    for clip in nodes:
        quantizer = quantizers.get(clip.input[0]) if clip.op_type == "Clip" else None
        if quantizer is None:
            continue
        bounds = _clip_bounds(clip, arrays)
        scale = arrays.get(quantizer.input[1])
        if bounds is None or scale is None or scale.size != 1:
            continue  # refused later, as a DequantizeLinear of no QuantizeLinear
        if quantizer.input[0] in inputs:
            raise UnsupportedOperator(
                f"node {describe_node(clip)} narrows the range of input {quantizer.input[0]}",
                remedy="quantize the input over the whole range of its type",
            )
        zero = arrays[quantizer.input[2]].item() if len(quantizer.input) > 2 else 0
        reals = [np.float32((bound - zero) * scale.item()) for bound in bounds]
        _swap(model, quantizer, clip, reals)


def _swap(model: Any, quantizer: Any, clip: Any, bounds: list[np.float32]) -> None:
    """Put a Clip to real bounds before a quantizer, in place of the one behind it."""
    from onnx import helper, numpy_helper

    whole, narrowed = quantizer.output[0], clip.output[0]
    names = [f"{narrowed}_low", f"{narrowed}_high"]
    for name, bound in zip(names, bounds, strict=True):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(bound), name))
    real = helper.make_node(
        "Clip", [quantizer.input[0], *names], [f"{narrowed}_real"], name=clip.name
    )
    replacement = helper.make_node(
        "QuantizeLinear", [real.output[0], *quantizer.input[1:]], [narrowed], name=quantizer.name
    )
    replacement.attribute.extend(quantizer.attribute)
    place = list(model.graph.node).index(clip)
    model.graph.node.remove(clip)
    model.graph.node.insert(place, replacement)
    model.graph.node.insert(place, real)
    if not any(whole in node.input for node in model.graph.node):
        model.graph.node.remove(quantizer)


def _pad_explicitly(model: Any) -> None:
    """The automatic padding of a convolution in numbers, which need its input's extents."""
    from onnx import helper, shape_inference

    convolutions = [node for node in model.graph.node if _automatic_padding(node) is not None]
    if not convolutions:
        return
    graph = shape_inference.infer_shapes(model).graph
    shapes = {
        info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        for info in (*graph.value_info, *graph.input)
    }
    for node in convolutions:
        how = _automatic_padding(node)
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        image, kernel = (shapes.get(name, [])[2:] for name in node.input[:2])
        if not image or len(image) != len(kernel):
            continue  # refused later, by TVM's operator
        strides = given.get("strides", [1] * len(image))
        dilations = given.get("dilations", [1] * len(image))
        total = [
            max((-(-size // s) - 1) * s + d * (k - 1) + 1 - size, 0) if how != b"VALID" else 0
            for size, k, s, d in zip(image, kernel, strides, dilations, strict=True)
        ]
        less, more = [t // 2 for t in total], [t - t // 2 for t in total]
        pads = [*less, *more] if how != b"SAME_LOWER" else [*more, *less]
        kept = [a for a in node.attribute if a.name not in ("auto_pad", "pads")]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute("pads", pads)])


def _automatic_padding(node: Any) -> bytes | None:
    for attribute in node.attribute if node.op_type == "Conv" else ():
        if attribute.name == "auto_pad" and attribute.s != b"NOTSET":
            return bytes(attribute.s)
    return None
