"""A network ready to be written as C: its functions made, its memory planned."""

from __future__ import annotations

from dataclasses import dataclass

from entrain.deploy.lowering.functions import LayerFunction, layer_function
from entrain.deploy.lowering.graph import LoweredGraph
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
    return planned(graph, tuple(layer_function(layer) for layer in graph.layers))


def planned(graph: LoweredGraph, functions: tuple[LayerFunction, ...]) -> Program:
    """A network of given functions, one a layer, and its memory plan."""
    plan = plan_memory(
        graph,
        {function.layer.name: function.scratch_bytes for function in functions},
        {function.layer.name: function.overwrites for function in functions},
    )
    return Program(graph, functions, plan)
