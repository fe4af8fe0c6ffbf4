"""A network ready to be written as C: its passes done, its functions made, its memory planned."""

from __future__ import annotations

from dataclasses import dataclass

from entrain.deploy.lowering.functions import LayerFunction, layer_function
from entrain.deploy.lowering.graph import LoweredGraph
from entrain.deploy.lowering.memory import MemoryPlan, in_place_candidates, plan_memory
from entrain.deploy.lowering.passes import PASSES


@dataclass(frozen=True)
class Program:
    """A network, the C function of each of its layers, and where everything lies."""

    graph: LoweredGraph
    functions: tuple[LayerFunction, ...]
    plan: MemoryPlan


def build_program(imported: LoweredGraph) -> Program:
    """Run the passes over an imported network, then make its functions and its memory plan.

    Raises:
        UnsupportedOperator: a layer has no C form.
    """
    graph = imported
    for transformed in PASSES:
        graph = transformed(graph)
    functions = tuple(layer_function(layer) for layer in graph.layers)
    generated = {function.layer.name for function in functions if function.generated}
    candidates = in_place_candidates(graph)
    plan = plan_memory(
        graph,
        {function.layer.name: function.scratch_bytes for function in functions},
        {name: values for name, values in candidates.items() if name in generated},
    )
    return Program(graph, functions, plan)
