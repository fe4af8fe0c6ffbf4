"""Quantize keys before they are transposed.

Where the scores are a product with transposed keys, a tool may have quantized the transposed ones.
The integers are the same before, and there the channels of a key lie side by side, as every
product of integers wants them.
"""

from __future__ import annotations

from typing import Any

from entrain.deploy.lowering.onnx_rewrites.editing import (
    Namer,
    attributes,
    constants,
    is_output,
    producers,
    readers,
    replace_nodes,
)

_SCALINGS = {"Mul", "Div"}


def transpose_keys_late(model: Any) -> None:
    """Move a Transpose behind QuantizeLinear and DequantizeLinear, if products alone read it."""
    for quantizer in [n.output[0] for n in model.graph.node if n.op_type == "QuantizeLinear"]:
        chain = _chain(model, quantizer)
        dequantizers = readers(model, quantizer)
        if chain and all(_is_factor(model, node) for node in dequantizers):
            _turn(model, chain, dequantizers)


def _chain(model: Any, quantized: str) -> list[Any]:
    """A Transpose of the last axis, scalings by a number, and the quantizer; empty if otherwise."""
    made_by, arrays = producers(model), constants(model)
    chain = [made_by[quantized]]
    while (node := made_by.get(chain[0].input[0])) is not None:
        if len(readers(model, node.output[0])) != 1 or is_output(model, node.output[0]):
            break
        chain.insert(0, node)
        if node.op_type == "Transpose":
            return chain if _moves_last(node) else []
        factor = arrays.get(node.input[1]) if node.op_type in _SCALINGS else None
        if factor is None or factor.size != 1:
            break
    return []


def _moves_last(transpose: Any) -> bool:
    order = attributes(transpose).get("perm")
    return order is not None and order[-1] != len(order) - 1


def _is_factor(model: Any, node: Any) -> bool:
    """Whether a node dequantizes what matrix products alone read, with something computed."""
    if node.op_type != "DequantizeLinear" or is_output(model, node.output[0]):
        return False
    found, arrays, made_by = readers(model, node.output[0]), constants(model), producers(model)
    return bool(found) and all(
        reader.op_type == "MatMul"
        and not any(_is_constant(name, arrays, made_by) for name in reader.input)
        for reader in found
    )


def _is_constant(name: str, arrays: dict[str, Any], made_by: dict[str, Any]) -> bool:
    """Whether a tensor is a constant, or one that is dequantized."""
    node = made_by.get(name)
    return name in arrays or (node is not None and all(n in arrays for n in node.input if n))


def _turn(model: Any, chain: list[Any], dequantizers: list[Any]) -> None:
    transpose, *scaled = chain
    names = Namer(model)
    replacements: list[tuple[Any, list[Any]]] = [(transpose, [])]
    scaled[0].input[0] = transpose.input[0]
    for node in dequantizers:
        final = node.output[0]
        last = type(node)()
        last.CopyFrom(transpose)
        before = type(node)()
        before.CopyFrom(node)
        before.output[0] = last.input[0] = names(f"{final}_before")
        last.output[0] = final
        replacements.append((node, [before, last]))
    replace_nodes(model, replacements)
