"""A network ready to be written as C: its functions made, its memory planned."""

from __future__ import annotations

from dataclasses import dataclass

from entrain.deploy.lowering.functions import LayerFunction, layer_function
from entrain.deploy.lowering.graph import LoweredGraph
from entrain.deploy.lowering.in_place import in_place_candidates
from entrain.deploy.lowering.memory import MemoryPlan, plan_memory


@dataclass(frozen=True)
class Program:
    """A network, the C function of each of its layers, and where everything lies."""

    graph: LoweredGraph
    functions: tuple[LayerFunction, ...]
    plan: MemoryPlan


def build_program(graph: LoweredGraph) -> Program:
    """The C functions of a network and its memory plan.

    Raises:
        UnsupportedOperator: a layer has no C form.
    """
    functions = tuple(layer_function(layer) for layer in graph.layers)
    generated = {function.layer.name for function in functions if function.generated}
    candidates = in_place_candidates(graph)
    plan = plan_memory(
        graph,
        {function.layer.name: function.scratch_bytes for function in functions},
        {name: values for name, values in candidates.items() if name in generated},
    )
    return Program(graph, functions, plan)
