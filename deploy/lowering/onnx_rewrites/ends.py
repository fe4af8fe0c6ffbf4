"""Quantizers at the very ends of a network, where tools leave moves outside of them.

A tool quantizes what a layer reads and writes, and a network may turn its input about before its
first layer and its output behind its last one. Moves keep every element as it is, so quantizing
before them (or behind them) gives the same integers. Whoever feeds the device then quantizes the
input itself, and whoever reads it dequantizes the output itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.onnx_rewrites.editing import (
    MOVES,
    Namer,
    computed_inputs,
    constants,
    is_output,
    producers,
    readers,
    replace_graph,
    replace_nodes,
)


def quantize_the_ends(model: Any) -> None:
    """Put QuantizeLinear and DequantizeLinear behind inputs and before outputs that are moved."""
    arrays = constants(model)
    for value in computed_inputs(model):
        moves = [n for n in readers(model, value.name) if n.op_type in MOVES]
        if moves and not is_output(model, value.name):
            quantizers = list(_quantizers(model, value.name))
            kinds = {_kind(node, arrays) for node in quantizers}
            if len(kinds) == 1 and None not in kinds:
                _quantize_input(model, value.name, moves, quantizers[0])
    for value in model.graph.output:
        dequantizer = _dequantizer(model, value.name)
        if dequantizer is not None and _kind(dequantizer, arrays) is not None:
            _quantize_output(model, value.name, dequantizer)


def _quantizers(model: Any, tensor: str) -> Iterator[Any | None]:
    """What reads a tensor however moved; None for each reader that does not quantize it."""
    for node in readers(model, tensor):
        if node.op_type == "QuantizeLinear":
            yield node
        elif node.op_type in MOVES and node.input[0] == tensor:
            for output in node.output:
                yield from [None] if is_output(model, output) else _quantizers(model, output)
        else:
            yield None


def _dequantizer(model: Any, tensor: str) -> Any | None:
    """What dequantized a tensor before it was moved; None if it was not moved at all."""
    made_by = producers(model)
    node = made_by.get(tensor)
    moved = False
    while node is not None and node.op_type in MOVES:
        node, moved = made_by.get(node.input[0]), True
    dequantized = node is not None and node.op_type == "DequantizeLinear"
    return node if moved and dequantized else None


def _kind(node: Any | None, arrays: dict[str, Array]) -> tuple[float, str, int] | None:
    """Step, type and zero point of a quantizer; None unless it is written with one of each."""
    if node is None or len(node.input) < 3:
        return None
    step, zero = (arrays.get(name) for name in node.input[1:])
    if step is None or zero is None or step.size != 1 or zero.size != 1:
        return None
    return float(step.item()), str(zero.dtype), int(zero.item())


def _quantize_input(model: Any, tensor: str, moves: list[Any], like: Any) -> None:
    names = Namer(model)
    integers, reals = names(f"{tensor}_quantized"), names(f"{tensor}_dequantized")
    pair = _pair(tensor, integers, reals, like)
    for node in moves:
        node.input[0] = reals
    replace_graph(model, [*pair, *model.graph.node])


def _quantize_output(model: Any, tensor: str, like: Any) -> None:
    names = Namer(model)
    last = producers(model)[tensor]
    moved, integers = names(f"{tensor}_moved"), names(f"{tensor}_quantized")
    again = type(last)()
    again.CopyFrom(last)
    again.output[list(last.output).index(tensor)] = moved
    replace_nodes(model, [(last, [again, *_pair(moved, integers, tensor, like)])])
    for node in readers(model, tensor):
        node.input[:] = [moved if name == tensor else name for name in node.input]


def _pair(source: str, integers: str, reals: str, like: Any) -> list[Any]:
    """A quantizer and a dequantizer with another one's parameters."""
    from onnx import helper

    parameters = list(like.input[1:])
    return [
        helper.make_node("QuantizeLinear", [source, *parameters], [integers]),
        helper.make_node("DequantizeLinear", [integers, *parameters], [reals]),
    ]
