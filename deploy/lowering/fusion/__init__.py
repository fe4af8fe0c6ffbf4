"""Recognising what several layers compute together: attention, as one integer operator.

``RECOGNISERS`` is the registry: one mechanism a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.fusion.contract import Recogniser
from entrain.deploy.lowering.fusion.linear import recognise_linear
from entrain.deploy.lowering.fusion.oscillator import recognise_oscillator
from entrain.deploy.lowering.fusion.real_graph import real_graph
from entrain.deploy.lowering.fusion.recognise import recognise
from entrain.deploy.lowering.fusion.region import find_regions, held_before
from entrain.deploy.lowering.fusion.softmax import recognise_softmax
from entrain.deploy.lowering.graph import Node, Value

RECOGNISERS: tuple[Recogniser, ...] = (recognise_softmax, recognise_oscillator, recognise_linear)


class AttentionRecogniser:
    """Knows the attentions of a model; ``import_onnx`` asks it.

    What happens within an attention is no longer quantized: a fused layer differs from the single
    ones by their roundings, and layers that nobody else reads are gone.

    Args:
        model: from :func:`entrain.deploy.lowering.onnx_file.read_onnx`.
    """

    def __init__(self, model: Any) -> None:
        self._graph = real_graph(model)

    def __call__(self, output: Value, known: Mapping[str, Value]) -> tuple[str, Node] | None:
        """Title and operator of the attention that writes a value; None if none does.

        Args:
            output: the value in question.
            known: all values before it, by their ONNX names.
        """
        shapes = {name: value.shape for name, value in known.items()}
        held = held_before(self._graph, output.onnx_output, shapes)
        if not all(moved and _covers(known[name], output) for name, moved in held):
            return None  # that one is the context: fused into this one, it would not saturate
        for region in find_regions(self._graph, output.onnx_output, shapes):
            inputs = tuple(known[name] for name in region.inputs)
            found = recognise(region, inputs, output, RECOGNISERS)
            if found is None:
                continue
            try:
                return found.mechanism.title, found.node()
            except UnsupportedOperator:
                continue  # too large for the fused form: it is translated operator by operator
        return None


def _covers(value: Value, other: Value) -> bool:
    """Whether a value's range of real numbers holds another's, up to half a step of the other."""
    (low, high), (least, most) = (
        [(end - each.zero_point) * each.scale for end in integer_range(each.dtype)]
        for each in (value, other)
    )
    return low <= least + other.scale / 2 and most - other.scale / 2 <= high
